//! What is said at the end.

use std::io::Write;
use std::path::Path;

use dtkc_item::ItemKind;
use dtkc_label::duplicates::Counts;
use dtkc_label::table;
use dtkc_label::tally::Summary;
use serde_json::{Value, json};

/// The table, beside the rows where these are on standard output.
pub fn table(summary: &Summary, kind: ItemKind, to_stderr: bool) -> anyhow::Result<()> {
    let text = table::render(summary, kind);
    match to_stderr {
        true => std::io::stderr().write_all(text.as_bytes())?,
        false => std::io::stdout().write_all(text.as_bytes())?,
    }
    Ok(())
}

/// The figures for programs, with what `more` says.
pub fn json(summary: &Summary, seconds: f64, processed: u64, more: Value) -> anyhow::Result<()> {
    let mut value = serde_json::to_value(summary)?;
    if let Some(map) = value.as_object_mut() {
        map.insert("seconds".into(), json!(seconds));
        map.insert("images_per_second".into(), json!(processed as f64 / seconds.max(1e-9)));
        map.extend(more.as_object().cloned().unwrap_or_default());
    }
    writeln!(std::io::stdout(), "{value:#}")?;
    Ok(())
}

/// One line on copies, where they were looked for.
pub fn duplicates(counts: Option<&Counts>) {
    let Some(Counts { groups, surplus, table, .. }) = counts else { return };
    let count = |n: &usize| dtkc_human::count(*n as u64);
    match surplus {
        0 => eprintln!("no image is a near-duplicate of another"),
        1 => eprintln!("1 image is a near-duplicate of another: {}", table.display()),
        _ => {
            eprintln!("{} images are near-duplicates of {} others: {}", count(surplus), count(groups), table.display())
        }
    }
}

/// One line on what failed, and where to look.
pub fn warn_failures(summary: &Summary, kind: ItemKind, list: Option<&Path>) {
    if summary.failed == 0 {
        return;
    }
    let mut kinds: Vec<(&String, &u64)> = summary.failures.iter().collect();
    kinds.sort_by_key(|(code, count)| (std::cmp::Reverse(**count), *code));
    let kinds: Vec<String> =
        kinds.iter().map(|(code, count)| format!("{} {code}", dtkc_human::count(**count))).collect();
    let place = match list {
        Some(list) => format!("listed in {}", list.display()),
        None => "see the column error".to_owned(),
    };
    let (failed, images) = (dtkc_human::count(summary.failed), dtkc_human::count(summary.images));
    eprintln!("warning: {failed} of {images} {kind} could not be labelled ({}); {place}", kinds.join(", "));
}
