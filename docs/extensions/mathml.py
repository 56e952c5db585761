r"""Formulas as MathML, converted at build time, so that pages load no JavaScript.

A formula is numbered with `\tag{…}`, which GitHub understands too.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

TAG = re.compile(r"\s*\\tag\{(\w+)\}")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name that `html_math_renderer` takes."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(translator: Any, node: nodes.math) -> None:
    """A formula within a line."""
    translator.body.append(_converted(node, node.astext(), as_block=False))
    raise nodes.SkipNode


def block(translator: Any, node: nodes.math_block) -> None:
    """A formula on a line of its own, with its number if it has one."""
    latex = node.astext()
    tag = TAG.search(latex)
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    if tag:
        anchor = f"equation-{tag[1]}"
        translator.body.append(
            f'<span class="eqno" id="{anchor}">({tag[1]})<a class="headerlink" href="#{anchor}" '
            'title="Link to this equation">#</a></span>'
        )
    translator.body.append(_converted(node, TAG.sub("", latex), as_block=True) + "</div>\n")
    raise nodes.SkipNode


def _converted(node: nodes.Element, latex: str, as_block: bool) -> str:
    try:
        return str(tex2mathml(latex, as_block=as_block))
    except MathError as error:
        raise ExtensionError(f"{node.source}:{node.line}: {error}: {latex}") from None
