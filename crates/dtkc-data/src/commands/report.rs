//! What `import`, `fetch` and `synth` say at the end.

use std::io::Write;

use dtkc_cli::Usage;
use dtkc_cli::exit::Interrupted;
use dtkc_data::import::{ImportError, Summary};
use dtkc_human as human;

/// Classes that are listed by name before the rest is only counted.
const LISTED: usize = 12;

/// Gives an error its exit code.
pub fn failed(error: ImportError) -> anyhow::Error {
    match error {
        ImportError::Usage(text) => Usage(text).into(),
        ImportError::Interrupted(text) => Interrupted(text).into(),
        other => other.into(),
    }
}

/// Prints the summary: as JSON, as text, or not at all.
pub fn done(summary: &Summary, json: bool, quiet: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, summary)?;
        writeln!(out)?;
    } else if !quiet {
        write!(out, "{}", text(summary))?;
    }
    Ok(())
}

fn text(summary: &Summary) -> String {
    let what = match (summary.shape, summary.dim) {
        (Some(shape), _) => format!("{} images of {shape}", human::count(summary.count)),
        (None, dim) => format!("{} sequences of {} dimensions", human::count(summary.count), dim.unwrap_or(0)),
    };
    let time = human::duration(std::time::Duration::from_secs_f64(summary.seconds));
    let mut text = format!("wrote {}: {what}, {}, in {time}\n", summary.out.display(), human::bytes(summary.bytes));
    if !summary.classes.is_empty() {
        text += &format!("classes: {}\n", classes(summary));
    }
    if summary.unlabelled > 0 {
        text += &format!("unlabelled: {} (negative labels)\n", human::count(summary.unlabelled));
    }
    for note in &summary.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(list) = &summary.skipped_file {
        let kind = if summary.skipped == 1 { summary.kind.trim_end_matches('s') } else { summary.kind };
        text += &format!("skipped: {} {kind}, listed in {}\n", human::count(summary.skipped), list.display());
    }
    if let Some(list) = &summary.passed_over_file {
        let count: u64 = summary.passed_over.values().sum();
        let files = if count == 1 { "file" } else { "files" };
        let kinds: Vec<String> =
            summary.passed_over.iter().map(|(code, n)| format!("{} {code}", human::count(*n))).collect();
        let (count, kinds) = (human::count(count), kinds.join(", "));
        text += &format!(
            "passed over: {count} {files} that are no {} ({kinds}), listed in {}\n",
            summary.kind,
            list.display()
        );
    }
    text
}

/// `10 (0: 5,923, 1: 6,742, ...)`
fn classes(summary: &Summary) -> String {
    let classes = &summary.classes;
    let one = |c: &dtkc_data::import::ClassCount| {
        format!("{}: {}", c.name.clone().unwrap_or_else(|| c.label.to_string()), human::count(c.count))
    };
    let shown: Vec<String> = classes.iter().take(LISTED).map(one).collect();
    let more = if classes.len() > LISTED { ", ..." } else { "" };
    format!("{} ({}{more})", classes.len(), shown.join(", "))
}
