"""The coloured Petri net of TCP-MEDX's evaluation, executable and with time."""
