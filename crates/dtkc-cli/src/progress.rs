//! Progress of long work: a bar on a terminal, a plain line now and then in a log.

use std::fmt;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use dtkc_human as human;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How often a log line is written where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Remarks are made anew no more often than this: nobody reads faster.
const NOTE_EVERY: Duration = Duration::from_millis(100);

/// Where progress is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Nowhere.
    Hidden,
    /// A bar on a terminal.
    Bar,
    /// Now and then a line in a log.
    Lines,
}

impl Shown {
    /// On standard error, in the form that suits it, unless `quiet` says so.
    pub fn on_stderr(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Hidden,
            (false, true) => Self::Bar,
            (false, false) => Self::Lines,
        }
    }
}

/// Counts units of work and shows them on standard error with a rate and the time left.
/// Shared freely between threads. Work shorter than two seconds shows nothing in a log.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    shown: Shown,
    label: String,
    unit: &'static str,
    /// `u64::MAX` where the end is not known.
    total: AtomicU64,
    done: AtomicU64,
    skipped: AtomicU64,
    /// When the first units were done, and how many: what was prepared before them says nothing about the rest.
    first: OnceLock<(Instant, u64)>,
    last_line: Mutex<Instant>,
    note: Mutex<Note>,
}

/// The present remark, and when it was made.
#[derive(Debug, Default)]
struct Note {
    text: String,
    made: Option<Instant>,
}

impl Progress {
    /// Starts to count `total` units (`None` where the end is not known).
    pub fn new(shown: Shown, label: &str, unit: &'static str, total: Option<u64>) -> Self {
        let bar = if shown == Shown::Bar {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(8));
            bar.set_style(style(unit, total.is_some()));
            bar.set_prefix(label.to_owned());
            bar
        } else {
            ProgressBar::hidden()
        };
        let now = Instant::now();
        Self {
            bar,
            shown,
            label: label.to_owned(),
            unit,
            total: AtomicU64::new(total.unwrap_or(u64::MAX)),
            done: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            first: OnceLock::new(),
            // The first line comes after two seconds, not five: by then people wonder.
            last_line: Mutex::new(now - (LINE_EVERY - Duration::from_secs(2))),
            note: Mutex::default(),
        }
    }

    /// `n` more units are done.
    pub fn inc(&self, n: u64) {
        self.first.get_or_init(|| (Instant::now(), n));
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

    /// A short remark behind the counts, such as the loss. It is made only where somebody could see that it is new.
    pub fn note(&self, remark: fmt::Arguments<'_>) {
        if self.shown == Shown::Hidden {
            return;
        }
        // Whoever holds the lock is making one; two at a time are of no use.
        let Ok(mut note) = self.note.try_lock() else { return };
        if note.made.is_some_and(|made| made.elapsed() < NOTE_EVERY) {
            return;
        }
        note.made = Some(Instant::now());
        note.text = remark.to_string();
        self.bar.set_message(note.text.clone());
    }

    /// Prints a whole line above the bar.
    pub fn println(&self, text: &str) {
        if self.bar.is_hidden() {
            eprintln!("{text}");
        } else {
            self.bar.println(text);
        }
    }

    /// Takes the bar away; the caller prints its own summary.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn maybe_line(&self) {
        if self.shown != Shown::Lines {
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
        let new = self.done.load(Ordering::Relaxed);
        let rate = self
            .first
            .get()
            .map_or(0.0, |(since, first)| new.saturating_sub(*first) as f64 / since.elapsed().as_secs_f64().max(1e-9));
        let done = new + self.skipped.load(Ordering::Relaxed);
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|&total| total != u64::MAX);
        let mut line = match total {
            Some(total) => format!("{}: {} of {} {}", self.label, human::count(done), human::count(total), self.unit),
            None => format!("{}: {} {}", self.label, human::count(done), self.unit),
        };
        if rate > 0.0 {
            line += &format!(", {}", human::rate(rate));
        }
        if let Some(total) = total.filter(|&t| rate > 0.0 && t > done) {
            let left = Duration::from_secs_f64((total - done) as f64 / rate);
            line += &format!(", {} left", human::duration(left));
        }
        if let Some(note) = self.note.lock().ok().filter(|note| !note.text.is_empty()) {
            line += &format!(", {}", note.text);
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
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use indicatif::TermLike;

    use super::*;

    #[test]
    fn a_line_names_counts_rate_and_time_left() {
        let progress = Progress::new(Shown::Lines, "import", "images", Some(2000));
        progress.inc(400);
        assert_eq!(progress.line(), "import: 400 of 2,000 images", "what came before them is no part of a rate");
        progress.inc(600);
        progress.note(format_args!("2 skipped"));
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
        let progress = Progress::new(Shown::Hidden, "label", "images", None);
        progress.skip(500);
        assert_eq!(progress.line(), "label: 500 images");
        progress.set_total(2000);
        progress.inc(100);
        assert_eq!(progress.line(), "label: 600 of 2,000 images");
    }

    #[test]
    fn remarks_are_made_only_where_they_would_be_seen() {
        struct Counted<'a>(&'a AtomicU64);
        impl fmt::Display for Counted<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "remark {}", self.0.fetch_add(1, Ordering::Relaxed))
            }
        }
        let made = AtomicU64::new(0);
        let hidden = Progress::new(Shown::Hidden, "train", "images", None);
        hidden.note(format_args!("{}", Counted(&made)));
        assert_eq!(made.load(Ordering::Relaxed), 0);
        let lines = Progress::new(Shown::Lines, "train", "images", None);
        lines.note(format_args!("{}", Counted(&made)));
        assert!(lines.line().ends_with(", remark 0"), "{}", lines.line());
        // As if it had been made just now, however slow the machine is; and then long ago.
        lines.note.lock().unwrap().made = Some(Instant::now() + Duration::from_secs(3600));
        lines.note(format_args!("{}", Counted(&made)));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        lines.note.lock().unwrap().made = Instant::now().checked_sub(NOTE_EVERY);
        lines.note(format_args!("{}", Counted(&made)));
        assert!(lines.line().ends_with(", remark 1"), "{}", lines.line());
    }
}
