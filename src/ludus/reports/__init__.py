"""Reports: tables, pages and diagnoses of runs, made from the files of their folders alone."""
