//! Measures over the epochs, as plain drawings.

use std::fmt::Write;

use super::text::{escape, sentence};
use crate::model::{Chart, Line, Report};
use crate::words;

/// Size of the drawing, and of the part that holds the lines.
const SIZE: (f64, f64) = (360.0, 190.0);
const LEFT: f64 = 50.0;
const RIGHT: f64 = 10.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 22.0;

pub fn section(report: &Report) -> String {
    if report.charts.is_empty() {
        return String::new();
    }
    let mut restarts: Vec<usize> =
        report.charts.iter().flat_map(|chart| chart.lines.iter().map(|line| line.restart)).collect();
    restarts.sort_unstable();
    restarts.dedup();
    let mut out = String::from(
        "<div class=\"card\"><h2>How training went</h2><p class=\"hint\">Every line is a restart, the strong one is chosen. A dot marks an epoch after which \
         clusters were made anew (the loss may jump there), a cross the end of a restart that was dropped early.</p>",
    );
    if restarts.len() > 1 {
        out += "<div class=\"tools legend\" role=\"group\" aria-label=\"Restart in front\"><span>in front</span>";
        for restart in restarts {
            let chosen = restart == report.about.restart;
            let _ = write!(
                out,
                "<button type=\"button\" data-restart=\"{restart}\" aria-pressed=\"{chosen}\">restart {restart}{}</button>",
                if chosen { " ★" } else { "" }
            );
        }
        out += "</div>";
    }
    out += "<div class=\"charts\">";
    report.charts.iter().enumerate().for_each(|(at, chart)| out += &figure(at, chart));
    out + "</div></div>"
}

/// A restart, and the value of a measure after each epoch.
type Values = (usize, Vec<(usize, f32)>);

/// What the script needs for the values under the pointer: the lines of every chart.
pub fn facts(report: &Report) -> Vec<Vec<Values>> {
    let short = |line: &Line| (line.restart, line.points.iter().map(|&(epoch, value)| (epoch, value as f32)).collect());
    report.charts.iter().map(|chart| chart.lines.iter().map(short).collect()).collect()
}

fn figure(at: usize, chart: &Chart) -> String {
    let stage = chart.stage.as_ref().map_or(String::new(), |stage| format!("{}: ", escape(stage)));
    let unused = if chart.needs_labels { " <em>by labels, not used</em>" } else { "" };
    let name = escape(&chart.name.replace('_', " "));
    format!(
        "<figure class=\"chart\" data-chart=\"{at}\"><figcaption><b>{stage}{name}</b>{unused}<br><small>{}</small></figcaption>{}<output class=\"read\"></output></figure>",
        words::measure(&chart.name, chart.stage.as_deref()),
        drawing(chart, &format!("{} over the epochs", sentence(&format!("{stage}{name}"))))
    )
}

/// How epochs and values become places.
struct Scale {
    epochs: (f64, f64),
    values: (f64, f64),
}

impl Scale {
    fn of(chart: &Chart) -> Option<Self> {
        let points = || chart.lines.iter().flat_map(|line| line.points.iter());
        let (first, last) = (points().map(|p| p.0).min()?, points().map(|p| p.0).max()?);
        let (low, high) =
            points().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), p| (low.min(p.1), high.max(p.1)));
        let room = if high > low { (high - low) * 0.05 } else { high.abs().max(1.0) * 0.1 };
        Some(Self { epochs: (first as f64, (last as f64).max(first as f64 + 1.0)), values: (low - room, high + room) })
    }

    fn x(&self, epoch: f64) -> f64 {
        LEFT + (epoch - self.epochs.0) / (self.epochs.1 - self.epochs.0) * (SIZE.0 - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        SIZE.1 - BOTTOM - (value - self.values.0) / (self.values.1 - self.values.0) * (SIZE.1 - TOP - BOTTOM)
    }
}

fn drawing(chart: &Chart, label: &str) -> String {
    let Some(scale) = Scale::of(chart) else { return "<p class=\"hint\">No value is finite.</p>".into() };
    let mut out = format!(
        "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{label}\" data-first=\"{}\" data-last=\"{}\">",
        SIZE.0, SIZE.1, scale.epochs.0, scale.epochs.1
    );
    for tick in ticks(scale.values, 4) {
        let y = scale.y(tick);
        let _ = write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{}\"/><text x=\"{}\" y=\"{:.1}\" class=\"side\">{}</text>",
            SIZE.0 - RIGHT,
            LEFT - 6.0,
            y + 3.5,
            tick_text(tick)
        );
    }
    for tick in ticks(scale.epochs, 5).into_iter().filter(|tick| tick.fract() == 0.0) {
        let _ = write!(out, "<text x=\"{:.1}\" y=\"{}\" class=\"below\">{tick}</text>", scale.x(tick), SIZE.1 - 6.0);
    }
    // The chosen one last, so that it lies in front.
    let (chosen, others): (Vec<&Line>, Vec<&Line>) = chart.lines.iter().partition(|line| line.chosen);
    others.into_iter().chain(chosen).for_each(|line| out += &path(line, &scale));
    let _ = write!(out, "<path class=\"cursor\" d=\"M0 {TOP}V{}\"/></svg>", SIZE.1 - BOTTOM);
    out
}

fn path(line: &Line, scale: &Scale) -> String {
    let front = if line.chosen { " front" } else { "" };
    let mut out = format!("<g class=\"line{front}\" data-restart=\"{}\"><path d=\"", line.restart);
    for (at, &(epoch, value)) in line.points.iter().enumerate() {
        let _ = write!(out, "{}{:.1} {:.1}", if at == 0 { 'M' } else { 'L' }, scale.x(epoch as f64), scale.y(value));
    }
    out += "\"/>";
    if let [(epoch, value)] = line.points[..] {
        let _ = write!(out, "<circle r=\"2.5\" cx=\"{:.1}\" cy=\"{:.1}\"/>", scale.x(epoch as f64), scale.y(value));
    }
    for mark in &line.marks {
        let Some(&(_, value)) = line.points.iter().min_by_key(|(epoch, _)| epoch.abs_diff(mark.epoch)) else {
            continue;
        };
        let (x, y) = (scale.x(mark.epoch as f64), scale.y(value));
        let title = format!("<title>restart {}, epoch {}: {}</title>", line.restart, mark.epoch, escape(&mark.what));
        let _ = match mark.what.as_str() {
            "pruned" => {
                write!(out, "<path class=\"cross\" d=\"M{:.1} {:.1}l8 8m0-8l-8 8\">{title}</path>", x - 4.0, y - 4.0)
            }
            _ => write!(out, "<circle class=\"anew\" r=\"3\" cx=\"{x:.1}\" cy=\"{y:.1}\">{title}</circle>"),
        };
    }
    out + "</g>"
}

/// Round numbers within a range, about `count` of them.
fn ticks((low, high): (f64, f64), count: usize) -> Vec<f64> {
    let rough = (high - low) / count as f64;
    if !rough.is_finite() || rough <= 0.0 {
        return Vec::new();
    }
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|step| *step >= rough).unwrap_or(rough);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    // Whole multiples, so that no tick is 0.30000000000000004.
    (first..=last).map(|i| if step < 1.0 { i as f64 / (1.0 / step).round() } else { i as f64 * step }).collect()
}

/// A tick without digits that say nothing.
fn tick_text(tick: f64) -> String {
    let size = tick.abs();
    if size != 0.0 && !(0.001..100_000.0).contains(&size) { format!("{tick:e}") } else { tick.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(ticks((0.0, 1.0), 4), [0.0, 0.5, 1.0]);
        assert_eq!(ticks((1.0, 30.0), 5), [10.0, 20.0, 30.0]);
        assert_eq!(ticks((-0.32, 0.11), 4), [-0.2, 0.0]);
        assert!(ticks((1.0, 1.0), 4).is_empty());
        assert_eq!([0.0, 0.25, 20.0, 0.0001, -3e6].map(tick_text), ["0", "0.25", "20", "1e-4", "-3e6"]);
    }

    #[test]
    fn lines_stay_within_the_drawing_and_the_chosen_one_is_last() {
        let line = |restart: usize, chosen: bool| Line {
            restart,
            chosen,
            points: vec![(1, 4.0), (2, 2.0 + restart as f64), (3, -1.0)],
            marks: vec![crate::model::Mark { epoch: 2, what: "pruned".into() }],
        };
        let chart = Chart { name: "loss".into(), lines: vec![line(0, true), line(1, false)], ..Chart::default() };
        let svg = drawing(&chart, "loss");
        assert!(svg.find("data-restart=\"1\"") < svg.find("data-restart=\"0\""), "{svg}");
        assert!(svg.contains("restart 1, epoch 2: pruned"));
        let scale = Scale::of(&chart).map(|s| [s.x(1.0), s.x(3.0), s.y(4.0), s.y(-1.0)]);
        assert!(
            scale.is_some_and(|[a, b, c, d]| a >= LEFT && b <= SIZE.0 - RIGHT && c >= TOP && d <= SIZE.1 - BOTTOM),
            "{scale:?}"
        );
    }

    #[test]
    fn one_epoch_is_a_dot() {
        let line = Line { points: vec![(1, 0.5)], ..Line::default() };
        let svg = drawing(&Chart { lines: vec![line], ..Chart::default() }, "x");
        assert!(svg.contains("<circle r=\"2.5\"") && !svg.contains("NaN"), "{svg}");
    }
}
