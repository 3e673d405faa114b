"""Prints the imports between the rooms of src/clpapers as a graph in DOT, each arrow that others imply left out.

`make rooms` draws it into docs/rooms.svg.
"""

import networkx as nx

from clpapers import provenance
from clpapers.provenance import PACKAGE


def rooms() -> nx.DiGraph:
    """Folders and modules of the package, and which imports which; imports for type checkers alone do not count."""
    arrows = nx.DiGraph()
    for file in PACKAGE.rglob("*.py"):
        room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for name in provenance._parsed(file, "")[1]:
            other = provenance.module_file(name)
            if other and other.parent.is_relative_to(PACKAGE):
                arrows.add_edge(room, other.relative_to(PACKAGE).parts[0].removesuffix(".py"))
    arrows.remove_edges_from(list(nx.selfloop_edges(arrows)))
    arrows.remove_nodes_from(["__init__", "new"])  # the package itself, and templates
    return arrows


if __name__ == "__main__":
    print("digraph rooms {\n  node [shape=box, fontname=Helvetica];")
    for above, below in sorted(nx.transitive_reduction(rooms()).edges):
        print(f'  "{above}" -> "{below}";')
    print("}")
