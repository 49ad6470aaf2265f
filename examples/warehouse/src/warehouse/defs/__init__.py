"""Every definition of the project, one folder for each layer."""
