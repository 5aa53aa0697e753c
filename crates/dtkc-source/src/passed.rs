//! What was passed over: counted by reason, and listed in a file where one is wanted.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use dtkc_files::Pending;
use fs_err::File;

use crate::Reason;

/// Counts what was passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedOver {
    counts: BTreeMap<Reason, u64>,
}

impl PassedOver {
    /// Counts one.
    pub fn add(&mut self, reason: Reason) {
        *self.counts.entry(reason).or_default() += 1;
    }

    /// Counts all that another one has counted.
    pub fn join(&mut self, other: &Self) {
        for (reason, count) in &other.counts {
            *self.counts.entry(*reason).or_default() += count;
        }
    }

    /// How many in all.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// How many for each reason, by its code.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.iter().map(|(reason, count)| (reason.code(), *count)).collect()
    }

    /// The counts as part of a sentence: "2 other_extension, 1 hidden", the most frequent first.
    pub fn kinds(&self) -> String {
        let mut kinds: Vec<(u64, &str)> = self.counts.iter().map(|(reason, count)| (*count, reason.code())).collect();
        kinds.sort_by_key(|(count, code)| (std::cmp::Reverse(*count), *code));
        kinds.iter().map(|(count, code)| format!("{count} {code}")).collect::<Vec<_>>().join(", ")
    }
}

/// A list in CSV with path, code and reason, which appears whole or not at all. Nothing to list, no file.
#[derive(Debug)]
pub struct ListFile {
    target: PathBuf,
    open: Option<(Pending, BufWriter<File>)>,
}

impl ListFile {
    /// A list that will appear at `target`.
    pub fn new(target: &Path) -> Self {
        Self { target: target.to_owned(), open: None }
    }

    /// Adds a line.
    pub fn add(&mut self, path: &str, code: &str, reason: &str) -> io::Result<()> {
        let (_, writer) = match &mut self.open {
            Some(open) => open,
            closed => {
                let pending = Pending::beside(&self.target)?;
                let mut writer = BufWriter::new(File::create(pending.path())?);
                writer.write_all(b"path,code,reason\n")?;
                closed.insert((pending, writer))
            }
        };
        writeln!(writer, "{},{},{}", field(path), field(code), field(reason))
    }

    /// Completes the list; where there is nothing to list, an old one is removed. Says where it is.
    pub fn finish(self) -> io::Result<Option<PathBuf>> {
        let Some((pending, writer)) = self.open else {
            return dtkc_files::remove(&self.target).map(|()| None);
        };
        writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        pending.commit()?;
        Ok(Some(self.target))
    }
}

/// A CSV field, quoted where it must be, and never a formula.
fn field(text: &str) -> String {
    let text = dtkc_human::cell(text);
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.into_owned() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted() {
        let mut passed = PassedOver::default();
        assert_eq!((passed.total(), passed.kinds().as_str()), (0, ""));
        passed.add(Reason::Hidden);
        passed.add(Reason::OtherExtension);
        let mut more = passed.clone();
        more.add(Reason::OtherExtension);
        passed.join(&more);
        assert_eq!(passed.total(), 5);
        assert_eq!(passed.kinds(), "3 other_extension, 2 hidden");
        assert_eq!(passed.counts()["hidden"], 2);
    }

    #[test]
    fn the_list_is_csv_and_goes_away_again() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.csv");
        let mut list = ListFile::new(&target);
        list.add("x, \"y\".png", "empty", "the file is empty").unwrap();
        list.add("z", "hidden", Reason::Hidden.text()).unwrap();
        list.add("=1+1", "hidden", "-").unwrap();
        assert!(!target.exists());
        assert_eq!(list.finish().unwrap().as_deref(), Some(target.as_path()));
        let text = std::fs::read_to_string(&target).unwrap();
        assert_eq!(
            text,
            "path,code,reason\n\"x, \"\"y\"\".png\",empty,the file is empty\nz,hidden,it is hidden\n'=1+1,hidden,'-\n"
        );
        assert_eq!(ListFile::new(&target).finish().unwrap(), None);
        assert!(!target.exists());
        drop(list_with_a_line(&target));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    fn list_with_a_line(target: &Path) -> ListFile {
        let mut list = ListFile::new(target);
        list.add("a", "b", "c").unwrap();
        list
    }
}
