"""What must equal JavaScript to the byte."""
