"""Pure functions under everything else; they import nothing of ours."""
