"""Pages that read the same on GitHub and in the site.

Pages are ordinary Markdown, with three additions:

- `<!-- sphinx … -->` is Markdown for the site only, such as the list of pages; GitHub hides it.
- Text between `<!-- github -->` and `<!-- end github -->` is left out of the site.
- A name in backticks, such as `efhc_jax.simulate` or `efhc.simulate`, links to the reference where the
  reference has it.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SITE_ONLY = re.compile(r"^<!-- sphinx\n(.*?)^-->$", re.DOTALL | re.MULTILINE)
GITHUB_ONLY = re.compile(r"^<!-- github -->\n.*?^<!-- end github -->$", re.DOTALL | re.MULTILINE)
NAME = re.compile(r"(?:efhc_jax|efhc)\.(\w+(?:\.\w+)*)")


def setup(app: Sphinx) -> dict[str, Any]:
    """Choose the parts for the site, and link the names."""
    app.connect("source-read", choose)
    app.add_post_transform(Links)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def choose(app: Sphinx, page: str, source: list[str]) -> None:
    """Take the parts of a page that are for the site."""
    source[0] = SITE_ONLY.sub(r"\1", GITHUB_ONLY.sub("", source[0]))


class Links(SphinxPostTransform):
    """Names in backticks as links into the reference."""

    default_priority = 5  # before Sphinx resolves references, so that its own are left alone

    def run(self, **arguments: Any) -> None:
        """Replace each name that the reference has."""
        python = self.env.domains["py"]
        for literal in list(self.document.findall(nodes.literal)):
            named = NAME.fullmatch(literal.astext())
            if named is None or not isinstance(literal.parent, nodes.TextElement):
                continue
            if isinstance(literal.parent, nodes.reference):
                continue
            link = python.resolve_xref(
                self.env,
                self.env.current_document.docname,
                self.app.builder,
                "obj",
                f"efhc_jax.{named[1]}",
                nodes.Element(),
                literal.deepcopy(),
            )
            if link is not None:
                literal.replace_self(link)
