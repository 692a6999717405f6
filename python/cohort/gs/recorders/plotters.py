"""There are no plotters: scripts that ask first go on without."""

IS_MATPLOTLIB_AVAILABLE = False
IS_PYQTGRAPH_AVAILABLE = False
