"""Tables and figures as the papers print them, and the printed numbers beside the reproduced ones."""
