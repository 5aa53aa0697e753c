"""OUT/index.html: what scripts/paper.sh has made so far, beside what the paper has.

    python3 scripts/paper.py OUT
"""
import html
import re
import sys
from pathlib import Path

PARTS = [
    ("tables", "Methods side by side", ["tables-mnist", "tables-usps", "tables-coil", "tables-more"], "comparison.md",
     "The paper's tables: ACC and NMI of the run with the lowest loss, mean and standard deviation of 20 runs. Its figures are in the last columns; where it gives "
     "one figure only, it quotes others."),
    ("lambda", "The weight of the companion objectives", ["lambda"], "sweep.md",
     "The paper: the best of 20 runs is highest at .01 (.943); the means, .71 to .77, do not depend on it."),
    ("sigma", "The width of the kernels", ["sigma"], "sweep.md",
     "The paper: on MNIST best at .25 (.855), on USPS at .45 (.823); means between .64 and .73."),
    ("mismatch", "Mismatch of objectives", ["mismatch"], "mismatch.md",
     "The paper: the autoencoder's NMI rises for 250 of 1,200 epochs, then slowly falls while its error keeps falling; DTKC's rises steadily. Cosines of gradients are not in the paper."),
    ("importance", "Which pixels speak for a cluster", ["importance-ddc", "importance-dtkc"], None,
     "The paper shows SHAP's maps of some digits for DDC and DTKC. Red speaks for the cluster of the image, blue against it."),
    ("clusters", "Clusters as pictures", ["clusters-ddc.html", "clusters-dtkc.html"], None,
     "The paper shows images of each cluster. The whole report of the chosen restart is on the linked page."),
    ("sequences", "Sequences", ["sequences"], "comparison.md",
     "RDDC and RDTKC on pen strokes and spoken digits; the paper's figures are in the last columns."),
]
STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1100px;margin:2rem auto;padding:0 1rem;color:#1d2433;background:#fff}
table{border-collapse:collapse;font-size:13px;display:block;overflow-x:auto}th,td{padding:.2rem .6rem;border-bottom:1px solid #d5dae3;text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}img{max-width:100%}.note{color:#5a6475}iframe{width:100%;height:36rem;border:1px solid #d5dae3}
@media(prefers-color-scheme:dark){body{color:#e8ebf2;background:#161a22}th,td{border-color:#39414f}.note{color:#a9b2c3}}"""


def inline(text):
    """A line of Markdown, as far as our own files use it."""
    text = html.escape(text.replace("\\|", "|"))
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", text)


def cells(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]


def page(markdown):
    """Markdown of our own tables as HTML."""
    out, rows = [], []

    def close():
        if rows:
            head, *body = [row for row in rows if not all(re.fullmatch(r":?-*:?", cell) for cell in row)]
            out.append("<table><tr>" + "".join(f"<th>{inline(cell)}</th>" for cell in head) + "</tr>")
            out.extend("<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>" for row in body)
            out.append("</table>")
            rows.clear()

    for line in markdown.splitlines():
        if line.startswith("|"):
            rows.append(cells(line))
            continue
        close()
        if line.startswith("## "):
            out.append(f"<h3>{inline(line[3:])}</h3>")
        elif line.startswith("# ") or not line.strip():
            continue
        else:
            out.append(f'<p class="note">{inline(line.removeprefix("- "))}</p>')
    close()
    return "\n".join(out)


def section(root, key, title, names, table, about):
    parts = [f'<section id="{key}"><h2>{html.escape(title)}</h2><p>{html.escape(about)}</p>']
    made = 0
    for name in names:
        path = root / name
        if table and (path / table).exists():
            parts.append(page((path / table).read_text(encoding="utf-8")))
            parts.extend(f'<p><img src="{html.escape(name)}/{html.escape(plot.name)}" alt="{html.escape(plot.stem)}"></p>' for plot in sorted(path.glob("*.svg")))
        elif not table and (path / "sheet.png").exists():
            parts.append(f'<h3>{html.escape(name)}</h3><p><img src="{html.escape(name)}/sheet.png" alt="{html.escape(name)}"></p>')
        elif not table and path.suffix == ".html" and path.exists():
            parts.append(f'<h3><a href="{html.escape(name)}">{html.escape(path.stem)}</a></h3><iframe src="{html.escape(name)}" title="{html.escape(path.stem)}" loading="lazy"></iframe>')
        else:
            continue
        made += 1
    if made < len(names):
        parts.append(f'<p class="note">{made} of {len(names)} made so far.</p>')
    return "\n".join([*parts, "</section>"])


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    root = Path(sys.argv[1])
    kind = (root / "kind").read_text(encoding="utf-8").strip() if (root / "kind").exists() else "full"
    fast = "<p><b>The fast version</b>: samples of 2,000 items, short training, two restarts. Its figures mean little.</p>" if kind == "fast" else ""
    links = " · ".join(f'<a href="#{key}">{html.escape(title)}</a>' for key, title, *_ in PARTS)
    body = "\n".join(section(root, *part) for part in PARTS)
    text = f"""<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>The paper's tables and figures</title><style>{STYLE}</style><h1>The paper's tables and figures</h1>{fast}<p>{links}</p>
{body}
</html>
"""
    partial = root / "index.html.part"
    partial.write_text(text, encoding="utf-8")
    partial.replace(root / "index.html")


main()
