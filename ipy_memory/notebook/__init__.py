"""The faces: magics, results and panels."""
