"""Values that the command line names in its help before anything else is imported."""

COFACTOR = 150.0  # of arcsinh: usual for fluorescence; 5 for mass cytometry
REPORTED_CLASSES = 254  # the most that a report shows: more would not fit a byte, or a reader
TRANSFORMS = ("auto", "logicle", "arcsinh", "none")
