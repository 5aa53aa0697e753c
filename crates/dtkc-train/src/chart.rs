//! What plots share: colours, scales, text. Plain SVG that reads well on light and dark pages.

/// Readable on white and on black.
pub(crate) const COLORS: [&str; 8] =
    ["#3b7dd8", "#e0702b", "#2f9e62", "#b24fc0", "#b8921f", "#d6455d", "#2f9fae", "#8b7355"];

/// Classes: `s` small text, `g` grid lines, `f` frames.
pub(crate) const STYLE: &str = "text{fill:#1d2433}.s{fill:#5a6475;font-size:11px}.g{stroke:#d5dae3}.f{stroke:#8790a3;fill:none}\
                     @media(prefers-color-scheme:dark){text{fill:#e8ebf2}.s{fill:#a9b2c3}.g{stroke:#39414f}}";

/// From values to places.
pub(crate) struct Scale {
    low: f64,
    high: f64,
    step: f64,
    start: f64,
    end: f64,
}

impl Scale {
    /// From `start` to `end`, with round numbers around all values at both.
    pub(crate) fn of(values: impl Iterator<Item = f64>, start: f64, end: f64) -> Self {
        let (mut low, mut high) = values.fold((f64::MAX, f64::MIN), |(low, high), v| (low.min(v), high.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let range = (high - low).max(low.abs().max(high.abs()) * 1e-3).max(1e-6);
        let size = 10f64.powf((range / 4.0).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * size).into_iter().find(|step| range / step <= 5.0);
        let step = step.unwrap_or(range);
        let (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
        Self { low, high: if high > low { high } else { low + step }, step, start, end }
    }

    /// Where a value lies; one outside lies at the end.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        self.start + (self.end - self.start) * share.clamp(0.0, 1.0)
    }

    /// Round values, with their text.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
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

/// Text inside SVG.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_end_at_round_numbers() {
        let scale = Scale::of([0.62, 0.95].into_iter(), 210.0, 0.0);
        let texts: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0.6", "0.7", "0.8", "0.9", "1.0"]);
        assert_eq!((scale.at(0.6), scale.at(1.0), scale.at(7.0)), (210.0, 0.0, 0.0));
        let one = Scale::of([-2.5].into_iter(), 210.0, 0.0);
        assert!(one.low <= -2.5 && one.high > -2.5 && one.ticks().len() <= 7);
        assert_eq!(Scale::of(std::iter::empty(), 210.0, 0.0).ticks().len(), 6);
        let around = Scale::of([-0.3, 0.3].into_iter(), 210.0, 0.0).ticks();
        assert!(around.iter().any(|(_, text)| text == "0.0"), "{around:?}");
    }
}
