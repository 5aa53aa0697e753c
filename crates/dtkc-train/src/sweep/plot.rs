//! A sweep as a picture: plain SVG that reads well on light and dark pages.
//!
//! One panel for accuracy, where there are labels, and one for the loss. The values of the first setting lie side by side in
//! the order that they were given in; every combination of the others is a series of its own colour. A disc is the mean with its
//! standard deviation, a diamond the restart with the lowest loss, a cross what the paper has.

use std::fmt::Write as _;

use super::{Axis, PointFigures, SweepTable};
use crate::chart::{COLORS, STYLE, Scale, escaped};
use crate::compare::table::Spread;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 20.0;
/// Above the first panel.
const HEAD: f64 = 48.0;
const PANEL: f64 = 210.0;
/// Below a panel: values and the name of the setting.
const FOOT: f64 = 52.0;
const LINE: f64 = 18.0;
/// Part of a value's room that series share.
const SHARED: f64 = 0.5;

/// What a panel shows of a point.
struct Panel {
    title: &'static str,
    value: fn(&PointFigures) -> Option<Spread>,
    with_paper: bool,
}

/// The picture of one dataset.
pub(super) fn plot(axes: &[Axis], table: &SweepTable) -> String {
    let accuracy = Panel { title: "ACC", value: |point| point.acc, with_paper: true };
    let loss = Panel { title: "loss (without labels)", value: |point| point.loss, with_paper: false };
    let panels: Vec<Panel> = [accuracy, loss].into_iter().skip(usize::from(!table.is_labelled())).collect();
    let layout = Layout::new(axes, table);
    let height = HEAD + panels.len() as f64 * (PANEL + FOOT) + layout.legend_lines() * LINE + 8.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"system-ui, sans-serif\" \
         font-size=\"13\" role=\"img\" aria-label=\"{name}\">\n<style>{STYLE}</style>\n<text x=\"{LEFT}\" y=\"20\">{name}</text>\n",
        name = escaped(&table.heading)
    );
    for (number, panel) in panels.iter().enumerate() {
        layout.panel(&mut out, panel, HEAD + number as f64 * (PANEL + FOOT));
    }
    layout.legend(&mut out, HEAD + panels.len() as f64 * (PANEL + FOOT));
    out + "</svg>\n"
}

/// Where points lie.
struct Layout<'a> {
    axes: &'a [Axis],
    table: &'a SweepTable,
    /// Values of the first setting.
    slots: Vec<&'a str>,
    /// Values of the others.
    series: Vec<&'a [String]>,
}

impl<'a> Layout<'a> {
    fn new(axes: &'a [Axis], table: &'a SweepTable) -> Self {
        let (mut slots, mut series): (Vec<&str>, Vec<&[String]>) = (Vec::new(), Vec::new());
        for point in &table.points {
            let (slot, others) = split(point);
            if !slots.contains(&slot) {
                slots.push(slot);
            }
            if !series.contains(&others) {
                series.push(others);
            }
        }
        Self { axes, table, slots, series }
    }

    fn room(&self) -> f64 {
        (WIDTH - LEFT - RIGHT) / self.slots.len().max(1) as f64
    }

    /// The middle of a slot, and of a point in it.
    fn x(&self, slot: usize, series: usize) -> f64 {
        let middle = LEFT + self.room() * (slot as f64 + 0.5);
        let share = (series as f64 + 0.5) / self.series.len() as f64 - 0.5;
        middle + share * SHARED * self.room()
    }

    fn panel(&self, out: &mut String, panel: &Panel, top: f64) {
        let shown = self.table.points.iter().flat_map(|point| shown(panel, point));
        let scale = Scale::of(shown, top + PANEL, top);
        // Writing to a string cannot fail.
        let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
        let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>", top - 4.0, panel.title);
        for (value, text) in scale.ticks() {
            let y = scale.at(value);
            let _ = writeln!(out, "<path class=\"g\" d=\"M{LEFT} {y:.1}H{right}\"/>");
            let _ = writeln!(
                out,
                "<text class=\"s\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        }
        let _ = writeln!(out, "<path class=\"f\" d=\"M{LEFT} {top}V{bottom}H{right}\"/>");
        for (slot, text) in self.slots.iter().enumerate() {
            let (x, y) = (LEFT + self.room() * (slot as f64 + 0.5), bottom + 16.0);
            let _ = writeln!(
                out,
                "<text class=\"s\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{}</text>",
                escaped(text)
            );
        }
        let (middle, key) = ((LEFT + right) / 2.0, self.axes.first().map_or("", |axis| axis.key.as_str()));
        let _ = writeln!(
            out,
            "<text class=\"s\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            bottom + 32.0,
            escaped(key)
        );
        for number in 0..self.series.len() {
            self.draw(out, panel, &scale, number);
        }
    }

    fn draw(&self, out: &mut String, panel: &Panel, scale: &Scale, number: usize) {
        let color = COLORS[number % COLORS.len()];
        let mut line = String::new();
        let _ = writeln!(out, "<g stroke=\"{color}\" fill=\"{color}\" stroke-width=\"1.5\">");
        for point in &self.table.points {
            let (slot, others) = split(point);
            let Some(slot) = self.slots.iter().position(|known| *known == slot) else { continue };
            if others != self.series[number] {
                continue;
            }
            let x = self.x(slot, number);
            if let Some((_, mean)) = point.paper.filter(|_| panel.with_paper) {
                let y = scale.at(mean);
                let _ = writeln!(out, "<path class=\"f\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\"/>", x - 4.0, y - 4.0);
            }
            let Some(spread) = (panel.value)(point) else { continue };
            let (y, best) = (scale.at(spread.mean), scale.at(spread.best));
            if let Some(sd) = spread.sd {
                let (low, high) = (scale.at(spread.mean - sd), scale.at(spread.mean + sd));
                let ends = format!("M{:.1} {low:.1}h8M{:.1} {high:.1}h8", x - 4.0, x - 4.0);
                let _ = writeln!(out, "<path fill=\"none\" d=\"M{x:.1} {low:.1}V{high:.1}{ends}\"/>");
            }
            let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
            let _ = writeln!(out, "<path fill=\"none\" d=\"M{x:.1} {:.1}l5 5l-5 5l-5 -5z\"/>", best - 5.0);
            let _ = write!(line, "{}{x:.1} {y:.1}", if line.is_empty() { "M" } else { "L" });
        }
        if line.contains('L') {
            let _ = writeln!(out, "<path fill=\"none\" stroke-opacity=\"0.45\" d=\"{line}\"/>");
        }
        out.push_str("</g>\n");
    }

    fn legend_lines(&self) -> f64 {
        1.0 + f64::from(u8::from(self.has_paper())) + if self.axes.len() > 1 { self.series.len() as f64 } else { 0.0 }
    }

    fn has_paper(&self) -> bool {
        self.table.points.iter().any(|point| point.paper.is_some())
    }

    fn legend(&self, out: &mut String, top: f64) {
        let about =
            "disc and bar: mean and standard deviation over restarts; diamond: the restart with the lowest loss";
        let mut y = top + 12.0;
        let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{y:.1}\">{about}</text>");
        if self.has_paper() {
            // A line of its own: beside the other it would not fit.
            y += LINE;
            let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{y:.1}\">cross: the paper's mean</text>");
        }
        if self.axes.len() < 2 {
            return;
        }
        for (number, others) in self.series.iter().enumerate() {
            let (y, color) = (y + LINE * (number as f64 + 1.0), COLORS[number % COLORS.len()]);
            let parts = self.axes[1..].iter().zip(*others).map(|(axis, value)| format!("{} = {value}", axis.key));
            let text = escaped(&parts.collect::<Vec<_>>().join(", "));
            let _ = writeln!(out, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"4\" fill=\"{color}\"/>", LEFT + 5.0, y - 4.0);
            let _ = writeln!(out, "<text class=\"s\" x=\"{:.1}\" y=\"{y:.1}\">{text}</text>", LEFT + 16.0);
        }
    }
}

/// The value of the first setting, and those of the others.
fn split(point: &PointFigures) -> (&str, &[String]) {
    match point.values.split_first() {
        Some((first, others)) => (first, others),
        None => ("", &[]),
    }
}

/// Every number that a panel shows of a point.
fn shown(panel: &Panel, point: &PointFigures) -> Vec<f64> {
    let paper = point.paper.filter(|_| panel.with_paper).map(|(_, mean)| mean);
    let spread = (panel.value)(point).map(|spread| {
        let sd = spread.sd.unwrap_or(0.0);
        [spread.best, spread.mean - sd, spread.mean + sd]
    });
    spread.into_iter().flatten().chain(paper).filter(|value| value.is_finite()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::sweep::files::tests::sweep;

    #[test]
    fn every_result_is_drawn_and_nothing_else() {
        let sweep = sweep();
        let mut table = sweep.datasets[0].clone();
        let count = |text: &str, what: &str| text.matches(what).count();
        let both = plot(&sweep.axes, &table);
        // Two points with results in two panels, and one series in the legend.
        assert_eq!((count(&both, "<circle"), count(&both, "l5 5l-5 5l-5 -5z")), (5, 4));
        assert_eq!((count(&both, "l8 8m0 -8l-8 8"), count(&both, ">0.01</text>")), (1, 2));
        assert!(both.contains("loss.sigma = 0.15") && both.contains("the paper's mean"));
        table.points.iter_mut().for_each(|point| (point.acc, point.nmi, point.paper) = (None, None, None));
        let loss = plot(&sweep.axes[..1], &table);
        assert_eq!((count(&loss, "<circle"), count(&loss, ">ACC<")), (2, 0));
        table.heading = "a<b & \"c\"".into();
        assert!(plot(&sweep.axes, &table).contains("a&lt;b &amp; &quot;c&quot;"));
    }
}
