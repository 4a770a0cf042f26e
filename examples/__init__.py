"""Small programs that show what Greenbeat is for."""
