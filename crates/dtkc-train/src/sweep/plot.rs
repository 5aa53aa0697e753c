//! A sweep as a picture: plain SVG that reads well on light and dark pages.
//!
//! One panel for accuracy, where there are labels, and one for the loss. The values of the first setting lie side by side in
//! the order that they were given in; every combination of the others is a series of its own colour. A disc is the mean with its
//! standard deviation, a diamond the restart with the lowest loss, a cross what the paper has.

use std::fmt::Write as _;

use super::{Axis, PointFigures, SweepTable};
use crate::compare::table::Spread;

/// Readable on white and on black.
const COLORS: [&str; 8] = ["#3b7dd8", "#e0702b", "#2f9e62", "#b24fc0", "#b8921f", "#d6455d", "#2f9fae", "#8b7355"];
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

const STYLE: &str = "text{fill:#1d2433}.s{fill:#5a6475;font-size:11px}.g{stroke:#d5dae3}.f{stroke:#8790a3;fill:none}\
                     @media(prefers-color-scheme:dark){text{fill:#e8ebf2}.s{fill:#a9b2c3}.g{stroke:#39414f}}";

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
        let scale = Scale::of(self.table.points.iter().flat_map(|point| shown(panel, point)), top);
        // Writing to a string cannot fail.
        let (right, bottom) = (WIDTH - RIGHT, top + PANEL);
        let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{:.1}\">{}</text>", top - 4.0, panel.title);
        for (value, text) in scale.ticks() {
            let y = scale.y(value);
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
                let y = scale.y(mean);
                let _ = writeln!(out, "<path class=\"f\" d=\"M{:.1} {:.1}l8 8m0 -8l-8 8\"/>", x - 4.0, y - 4.0);
            }
            let Some(spread) = (panel.value)(point) else { continue };
            let (y, best) = (scale.y(spread.mean), scale.y(spread.best));
            if let Some(sd) = spread.sd {
                let (low, high) = (scale.y(spread.mean - sd), scale.y(spread.mean + sd));
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
        1.0 + if self.axes.len() > 1 { self.series.len() as f64 } else { 0.0 }
    }

    fn legend(&self, out: &mut String, top: f64) {
        let paper = self.table.points.iter().any(|point| point.paper.is_some());
        let about =
            "disc and bar: mean and standard deviation over restarts; diamond: the restart with the lowest loss";
        let paper = if paper { "; cross: the paper's mean" } else { "" };
        let _ = writeln!(out, "<text class=\"s\" x=\"{LEFT}\" y=\"{:.1}\">{about}{paper}</text>", top + 12.0);
        if self.axes.len() < 2 {
            return;
        }
        for (number, others) in self.series.iter().enumerate() {
            let (y, color) = (top + 12.0 + LINE * (number as f64 + 1.0), COLORS[number % COLORS.len()]);
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

/// From values to places.
struct Scale {
    low: f64,
    high: f64,
    step: f64,
    top: f64,
}

impl Scale {
    /// Ends at round numbers around all values.
    fn of(values: impl Iterator<Item = f64>, top: f64) -> Self {
        let (mut low, mut high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let range = (high - low).max(low.abs().max(high.abs()) * 1e-3).max(1e-6);
        let size = 10f64.powf((range / 4.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * size).into_iter().find(|step| range / step <= 5.0);
        let step = step.unwrap_or(range);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high: if high > low { high } else { low + step }, step, top }
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.top + PANEL * (1.0 - share.clamp(0.0, 1.0))
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        let count = ((self.high - self.low) / self.step).round() as usize;
        let digits = (-self.step.log10().floor()).max(0.0) as usize;
        let tick = |i: usize| {
            let value = self.low + i as f64 * self.step;
            // Nearly nothing has no sign.
            let value = if value.abs() < self.step / 2.0 { 0.0 } else { value };
            (value, format!("{value:.digits$}"))
        };
        (0..=count).map(tick).collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
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

    #[test]
    fn scales_end_at_round_numbers() {
        let scale = Scale::of([0.62, 0.95].into_iter(), 0.0);
        let texts: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0.6", "0.7", "0.8", "0.9", "1.0"]);
        assert_eq!((scale.y(0.6), scale.y(1.0)), (PANEL, 0.0));
        let one = Scale::of([-2.5].into_iter(), 0.0);
        assert!(one.low <= -2.5 && one.high > -2.5 && one.ticks().len() <= 7);
        assert_eq!(Scale::of(std::iter::empty(), 0.0).ticks().len(), 6);
        let around = Scale::of([-0.3, 0.3].into_iter(), 0.0).ticks();
        assert!(around.iter().any(|(_, text)| text == "0.0"), "{around:?}");
    }
}
