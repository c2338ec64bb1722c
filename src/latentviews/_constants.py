"""Values that the command line names in its help before anything else is imported."""

COFACTOR = 150.0  # of arcsinh: usual for fluorescence; 5 for mass cytometry
TRANSFORMS = ("auto", "logicle", "arcsinh", "none")
