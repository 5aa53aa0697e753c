//! Progress of long work: a bar on a terminal, a plain line now and then in a log.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

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
        line += &format!(", {rate:.0}/s");
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
        format!("{{prefix}} {{bar:28}} {{human_pos}}/{{human_len}} {unit} {{per_sec:.dim}} ETA {{eta}} {{msg}}")
    } else {
        format!("{{prefix}} {{spinner}} {{human_pos}} {unit} {{per_sec:.dim}} {{msg}}")
    };
    // The templates are constant but for the unit, which holds no braces.
    ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
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
