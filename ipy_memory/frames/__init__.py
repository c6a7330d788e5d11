"""Tables of memories that pandas can show, and no text of which is markup."""
