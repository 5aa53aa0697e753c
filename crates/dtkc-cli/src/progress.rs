//! Progress of long work: a bar on a terminal, a plain line now and then in a log.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::human;

/// How often a log line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Counts units of work and shows them on standard error with a rate and the time left.
/// Shared freely between threads. Work shorter than two seconds shows nothing in a log.
pub struct Progress {
    bar: ProgressBar,
    lines: bool,
    label: String,
    unit: &'static str,
    /// `u64::MAX` where the end is not known.
    total: AtomicU64,
    done: AtomicU64,
    skipped: AtomicU64,
    started: Instant,
    last_line: Mutex<Instant>,
    note: Mutex<String>,
}

impl Progress {
    /// Starts to count `total` units (`None` where the end is not known).
    pub fn new(label: impl Into<String>, unit: &'static str, total: Option<u64>) -> Self {
        Self::with_mode(label.into(), unit, total, std::io::stderr().is_terminal(), true)
    }

    /// Like [`Progress::new`], and silent where `quiet` says so.
    pub fn new_unless(quiet: bool, label: impl Into<String>, unit: &'static str, total: Option<u64>) -> Self {
        Self::with_mode(label.into(), unit, total, std::io::stderr().is_terminal(), !quiet)
    }

    fn with_mode(label: String, unit: &'static str, total: Option<u64>, terminal: bool, shown: bool) -> Self {
        let bar = if terminal && shown {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(8));
            bar.set_style(style(unit, total.is_some()));
            bar.set_prefix(label.clone());
            bar
        } else {
            ProgressBar::hidden()
        };
        let now = Instant::now();
        Self {
            bar,
            lines: shown && !terminal,
            label,
            unit,
            total: AtomicU64::new(total.unwrap_or(u64::MAX)),
            done: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            started: now,
            // The first line comes after two seconds, not five: by then people wonder.
            last_line: Mutex::new(now - (LINE_EVERY - Duration::from_secs(2))),
            note: Mutex::new(String::new()),
        }
    }

    /// `n` more units are done.
    pub fn inc(&self, n: u64) {
        self.done.fetch_add(n, Ordering::Relaxed);
        self.bar.inc(n);
        self.maybe_line();
    }

    /// Work that was already done before this run (a resumed job); it does not count for the rate.
    pub fn skip(&self, n: u64) {
        self.skipped.fetch_add(n, Ordering::Relaxed);
        self.bar.set_position(self.bar.position() + n);
        self.bar.reset_eta();
    }

    /// The end is known from now on, for example because a folder was counted meanwhile.
    pub fn set_total(&self, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.bar.set_length(total);
        self.bar.set_style(style(self.unit, true));
    }

    /// A short remark behind the counts, such as the loss.
    pub fn note(&self, text: impl Into<String>) {
        let text = text.into();
        self.bar.set_message(text.clone());
        if let Ok(mut note) = self.note.lock() {
            *note = text;
        }
    }

    /// Prints a whole line above the bar.
    pub fn println(&self, text: impl AsRef<str>) {
        if self.bar.is_hidden() {
            eprintln!("{}", text.as_ref());
        } else {
            self.bar.println(text);
        }
    }

    /// Units done so far.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes the bar away; the caller prints its own summary.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn maybe_line(&self) {
        if !self.lines {
            return;
        }
        // Whoever holds the lock is about to print; nobody has to wait for that.
        let Ok(mut last) = self.last_line.try_lock() else { return };
        if last.elapsed() < LINE_EVERY {
            return;
        }
        *last = Instant::now();
        eprintln!("{}", self.line());
    }

    fn line(&self) -> String {
        let elapsed = self.started.elapsed();
        let rate = self.done() as f64 / elapsed.as_secs_f64().max(1e-9);
        let done = self.done() + self.skipped.load(Ordering::Relaxed);
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|&total| total != u64::MAX);
        let mut line = match total {
            Some(total) => format!("{}: {} of {} {}", self.label, human::count(done), human::count(total), self.unit),
            None => format!("{}: {} {}", self.label, human::count(done), self.unit),
        };
        line += &format!(", {}", human::rate(rate));
        if let Some(total) = total.filter(|&t| rate > 0.0 && t > done) {
            let left = Duration::from_secs_f64((total - done) as f64 / rate);
            line += &format!(", {} left", human::duration(left));
        }
        if let Some(note) = self.note.lock().ok().filter(|n| !n.is_empty()) {
            line += &format!(", {note}");
        }
        line
    }
}

fn style(unit: &str, known: bool) -> ProgressStyle {
    let template = if known {
        format!("{{prefix}} {{bar:28}} {{human_pos}}/{{human_len}} {unit} {{rate:.dim}} ETA {{eta}} {{msg}}")
    } else {
        format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{rate:.dim}} {{msg}}")
    };
    // The templates are constant but for the unit, which holds no braces.
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    // indicatif's own rate has four decimals, however large it is.
    style.with_key("rate", |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        // A bar that cannot be written is not worth a failure.
        let _ = out.write_str(&human::rate(state.per_sec()));
    })
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use indicatif::TermLike;

    use super::*;

    #[test]
    fn a_line_names_counts_rate_and_time_left() {
        let progress = Progress::with_mode("import".into(), "images", Some(2000), false, false);
        progress.inc(1000);
        progress.note("2 skipped");
        let line = progress.line();
        assert!(line.starts_with("import: 1,000 of 2,000 images, "), "{line}");
        assert!(line.contains("/s, ") && line.contains(" left, 2 skipped"), "{line}");
    }

    /// A terminal that remembers what was written to it.
    #[derive(Debug, Clone, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().map_err(|_| io::ErrorKind::Other)?.push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_bar_has_a_short_rate() {
        for known in [true, false] {
            let screen = Screen::default();
            let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
            let bar = ProgressBar::with_draw_target(Some(5000), target);
            bar.set_style(style("images", known));
            for _ in 0..50 {
                bar.inc(3);
                std::thread::sleep(Duration::from_millis(1));
            }
            bar.tick();
            bar.force_draw();
            let text = screen.0.lock().map(|text| text.clone()).unwrap_or_default();
            let rates: Vec<&str> = text.split("/s").filter_map(|before| before.rsplit([' ', 'm']).next()).collect();
            assert!(rates.len() > 1, "no rate: {text:?}");
            for rate in &rates[..rates.len() - 1] {
                let decimals = rate.split_once('.').map_or(0, |(_, decimals)| decimals.len());
                assert!(decimals <= 2, "{rate} in {text:?}");
            }
        }
    }

    #[test]
    fn the_total_may_come_later_and_earlier_work_counts() {
        let progress = Progress::with_mode("label".into(), "images", None, false, false);
        progress.skip(500);
        assert_eq!(progress.line(), "label: 500 images, 0/s");
        progress.set_total(2000);
        progress.inc(100);
        assert!(progress.line().starts_with("label: 600 of 2,000 images, "), "{}", progress.line());
    }
}
