//! What was seen as a picture: NMI of the features, the loss and the cosines, over epochs. One colour for each network, a line
//! for each of its restarts; a term has a dash pattern of its own.

use std::fmt::Write as _;

use super::MismatchTable;
use crate::chart::{COLORS, STYLE, Scale, escaped};

const WIDTH: f64 = 720.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
const HEAD: f64 = 48.0;
const PANEL: f64 = 190.0;
/// Below a panel: epochs, and the title of the next.
const FOOT: f64 = 46.0;
const LINE: f64 = 18.0;
const DASHES: [&str; 5] = ["", "6 3", "2 3", "9 3 2 3", "1 5"];

/// A line of a panel.
struct Curve {
    color: &'static str,
    dash: &'static str,
    points: Vec<(usize, f64)>,
}

/// The picture of one dataset.
pub(super) fn plot(table: &MismatchTable) -> String {
    let terms = terms(table);
    let panels: Vec<(&str, Vec<Curve>)> = [
        ("NMI of k-means on the last block's output", nmi(table)),
        ("loss, of each network from its lowest to its highest", losses(table)),
        ("cosine between the gradients of what makes clusters and of another term", cosines(table, &terms)),
    ]
    .into_iter()
    .filter(|(_, curves)| curves.iter().any(|curve| !curve.points.is_empty()))
    .collect();
    let epochs = panels.iter().flat_map(|(_, curves)| curves).flat_map(|curve| &curve.points).map(|&(e, _)| e as f64);
    let x = Scale::of(epochs.chain([0.0]), LEFT, WIDTH - RIGHT);
    let bottom = HEAD + panels.len() as f64 * (PANEL + FOOT);
    let height = bottom + LINE * (table.subjects().len() + terms.len()) as f64 + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\" role=\"img\" aria-label=\"{name}\">\n<style>{STYLE}</style>\n<text x=\"{LEFT}\" y=\"20\">{name}: mismatch of \
         objectives</text>\n",
        name = escaped(&table.name)
    );
    for (number, (title, curves)) in panels.iter().enumerate() {
        panel(&mut out, title, curves, &x, HEAD + number as f64 * (PANEL + FOOT));
    }
    legend(&mut out, table, &terms, bottom);
    out + "</svg>\n"
}

fn color(table: &MismatchTable, subject: &str) -> &'static str {
    COLORS[table.subjects().iter().position(|known| *known == subject).unwrap_or(0) % COLORS.len()]
}

fn nmi(table: &MismatchTable) -> Vec<Curve> {
    let curve = |course: &super::Course| Curve {
        color: color(table, &course.subject),
        dash: "",
        points: course.values(|seen| seen.nmi),
    };
    table.courses.iter().map(curve).collect()
}

/// Losses of stages and networks are different things: each goes from 0 to 1.
fn losses(table: &MismatchTable) -> Vec<Curve> {
    let mut curves = Vec::new();
    for course in &table.courses {
        for pretraining in [true, false] {
            let points = course.values(|seen| seen.loss.filter(|_| seen.stage.is_some() == pretraining));
            let ends = points.iter().fold((f64::MAX, f64::MIN), |(low, high), p| (low.min(p.1), high.max(p.1)));
            if ends.1 > ends.0 {
                let points = points.into_iter().map(|(epoch, loss)| (epoch, (loss - ends.0) / (ends.1 - ends.0)));
                curves.push(Curve { color: color(table, &course.subject), dash: "", points: points.collect() });
            }
        }
    }
    curves
}

fn cosines(table: &MismatchTable, terms: &[&str]) -> Vec<Curve> {
    let mut curves = Vec::new();
    for course in &table.courses {
        for (number, term) in terms.iter().enumerate() {
            let points = course.values(|seen| seen.cosines.get(*term).copied());
            let dash = DASHES[number % DASHES.len()];
            curves.push(Curve { color: color(table, &course.subject), dash, points });
        }
    }
    curves
}

/// The terms that have cosines, each once.
fn terms(table: &MismatchTable) -> Vec<&str> {
    let all: std::collections::BTreeSet<&str> = table.courses.iter().flat_map(|course| course.terms()).collect();
    all.into_iter().collect()
}

fn panel(out: &mut String, title: &str, curves: &[Curve], x: &Scale, top: f64) {
    let values = curves.iter().flat_map(|curve| &curve.points).map(|&(_, value)| value);
    let y = Scale::of(values, top + PANEL, top);
    let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{:.1}\">{title}</text>", top - 6.0);
    for (value, text) in y.ticks() {
        let (at, left) = (y.at(value), LEFT - 6.0);
        let _ = writeln!(out, "<path class=\"g\" d=\"M{LEFT} {at:.1}H{right}\"/>");
        let _ = writeln!(out, "<text class=\"s\" x=\"{left}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>", at + 4.0);
    }
    for (value, text) in x.ticks() {
        let (at, below) = (x.at(value), bottom + 14.0);
        let _ = writeln!(out, "<text class=\"s\" x=\"{at:.1}\" y=\"{below:.1}\" text-anchor=\"middle\">{text}</text>");
    }
    let (middle, below) = ((LEFT + right) / 2.0, bottom + 28.0);
    let _ = writeln!(out, "<text class=\"s\" x=\"{middle}\" y=\"{below:.1}\" text-anchor=\"middle\">epochs</text>");
    let _ = writeln!(out, "<path class=\"f\" d=\"M{LEFT} {top}V{bottom}H{right}\"/>");
    for Curve { color, dash, points } in curves {
        let places = points.iter().map(|&(epoch, value)| format!("{:.1} {:.1}", x.at(epoch as f64), y.at(value)));
        let path = places.collect::<Vec<_>>().join("L");
        if path.contains('L') {
            let _ = writeln!(
                out,
                "<path fill=\"none\" stroke=\"{color}\" stroke-width=\"1.5\" stroke-dasharray=\"{dash}\" d=\"M{path}\"/>"
            );
        } else if let Some(&(epoch, value)) = points.first() {
            let (x, y) = (x.at(epoch as f64), y.at(value));
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{color}\"/>");
        }
    }
}

fn legend(out: &mut String, table: &MismatchTable, terms: &[&str], top: f64) {
    let colors = table.subjects().into_iter().map(|name| (name, color(table, name), ""));
    let dashes = terms.iter().enumerate().map(|(i, &term)| (term, "#8790a3", DASHES[i % DASHES.len()]));
    for (number, (name, color, dash)) in colors.chain(dashes).enumerate() {
        let y = top + LINE * number as f64;
        let _ = writeln!(
            out,
            "<path stroke=\"{color}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\" d=\"M{LEFT} {y:.1}h30\"/>\
             <text class=\"s\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT + 38.0,
            y + 4.0,
            escaped(name)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mismatch::files::tests::seen_twice;

    #[test]
    fn every_course_is_a_line_and_a_single_look_a_dot() {
        let picture = plot(&seen_twice().datasets[0]);
        let lines = picture.matches("stroke-width=\"1.5\"").count();
        // Two of NMI, and the losses of pretraining, twice (the second network's fixture has that stage, too).
        assert_eq!((lines, picture.matches("<circle").count()), (4, 1), "{picture}");
        assert!(picture.contains("cosine between") && picture.contains(">reconstruction</text>"));
        let mut table = seen_twice().datasets.remove(0);
        table.name = "a<b".into();
        table.courses.clear();
        let empty = plot(&table);
        assert!(empty.contains("a&lt;b") && !empty.contains("NaN"), "{empty}");
    }
}
