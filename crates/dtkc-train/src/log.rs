//! `log.jsonl`: one line per epoch of every restart.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use fs_err::File;
use serde::{Deserialize, Serialize};

use crate::error::TrainError;

/// What one epoch of one restart did. Everything but the timings and the memory is the same in every run with the same
/// seed; they come last, so that a comparison can cut them off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// Restart, counted from 0.
    pub restart: usize,
    /// The stage, where it is another than clustering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// Epoch of the stage, counted from 1.
    pub epoch: usize,
    /// Mean of the loss over the items of the epoch; absent where no step was finite, because JSON has no such number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// The same for every term of the loss, by name, before its weight.
    pub terms: BTreeMap<String, f64>,
    /// Learning rate of the last step.
    pub lr: f64,
    /// Clusters that got at least one image.
    pub used_clusters: usize,
    /// Mean entropy of the memberships divided by ln k: 0 = every image is certain, 1 = no image is.
    pub entropy: f64,
    /// Share of the smallest cluster.
    pub smallest_share: f64,
    /// Share of the largest cluster.
    pub largest_share: f64,
    /// Steps that were skipped because the loss or a gradient was not finite.
    pub skipped_steps: usize,
    /// Accuracy of the assignments made during the epoch, where the data has labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acc: Option<f64>,
    /// Normalised mutual information of the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// Whether the output layer was replaced after the epoch, by groups of fine clusters.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub regrouped: bool,
    /// What was seen inside the network after it, where somebody asked for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<InsideRecord>,
    /// Wall time of the epoch.
    pub seconds: f64,
    /// Part of it that was spent waiting for images.
    pub loading_seconds: f64,
    /// Wall time since the epoch before, or since the process began: with what is done between epochs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_seconds: Option<f64>,
    /// The most memory that the process had held by then, where the system tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_memory_bytes: Option<u64>,
    /// The kind of machine that it was trained on: see [`crate::resources::machine_kind`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
}

/// What was seen inside a network.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct InsideRecord {
    /// NMI of the labels with k-means on what the last block or layer before the clusters says, where there are labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nmi: Option<f64>,
    /// The cosine, on the weights of blocks or layers, between the gradient of the terms that make clusters and that of each
    /// other term, by its name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cosines: BTreeMap<String, f64>,
}

/// The open log of a run.
#[derive(Debug)]
pub struct Log {
    file: File,
    lines: usize,
}

impl Log {
    /// Opens the log for a run that was saved when it had `lines` lines. Later lines belong to work that is
    /// about to be repeated and are cut off, also a last line that was only half written.
    pub fn open(path: &Path, lines: usize) -> Result<Self, TrainError> {
        let mut file = File::options().create(true).truncate(false).read(true).write(true).open(path)?;
        let (kept, end) = line_end(&mut file, lines)?;
        file.set_len(end)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))?;
        Ok(Self { file, lines: kept })
    }

    /// Number of complete lines.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Adds a line and flushes it to the disk, so that a checkpoint never knows more than the log.
    pub fn append(&mut self, record: &EpochRecord) -> Result<(), TrainError> {
        let mut line = serde_json::to_string(record).map_err(std::io::Error::from)?;
        line.push('\n');
        self.file.write_all(line.as_bytes())?;
        self.lines += 1;
        Ok(())
    }

    /// Adds the first `lines` lines of another log as they are, or as many of them as it has whole.
    pub fn take_over(&mut self, other: &Path, lines: usize) -> Result<(), TrainError> {
        let other = Self::open(other, lines)?;
        let mut text = Vec::new();
        let mut from = other.file;
        std::io::Seek::rewind(&mut from)?;
        std::io::Read::read_to_end(&mut from, &mut text)?;
        self.file.write_all(&text)?;
        self.lines += other.lines;
        Ok(())
    }

    /// Makes what was appended durable.
    pub fn sync(&self) -> Result<(), TrainError> {
        Ok(self.file.sync_data()?)
    }
}

/// Where the first `lines` complete lines end, and how many there are.
fn line_end(file: &mut File, lines: usize) -> Result<(usize, u64), TrainError> {
    let mut reader = BufReader::new(file);
    let (mut kept, mut end, mut line) = (0, 0, Vec::new());
    while kept < lines {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            break;
        }
        kept += 1;
        end += read as u64;
    }
    Ok((kept, end))
}

/// The losses of a restart's last stage, epoch by epoch, since clusters were last made anew: before that they are another
/// measure.
pub fn last_losses(records: &[EpochRecord], restart: usize) -> Vec<f64> {
    let own: Vec<&EpochRecord> =
        records.iter().filter(|record| record.restart == restart && record.stage.is_none()).collect();
    let anew = own.iter().rposition(|record| record.regrouped).map_or(0, |last| last + 1);
    own[anew..].iter().filter_map(|record| record.loss).collect()
}

/// The kinds of machines that a restart was trained on, in their order.
pub fn machines(records: &[EpochRecord], restart: usize) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for kind in records.iter().filter(|record| record.restart == restart).filter_map(|record| record.machine.as_ref()) {
        if !kinds.contains(kind) {
            kinds.push(kind.clone());
        }
    }
    kinds
}

/// Reads a whole log. Lines that do not parse are an error that names the line.
pub fn read(path: &Path) -> Result<Vec<EpochRecord>, TrainError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    for (i, line) in BufReader::new(File::open(path)?).lines().enumerate() {
        let record = serde_json::from_str(&line?).map_err(|source| TrainError::DamagedLog {
            path: PathBuf::from(path),
            line: i + 1,
            reason: source.to_string(),
        })?;
        records.push(record);
    }
    Ok(records)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn record(epoch: usize) -> EpochRecord {
        EpochRecord {
            restart: 1,
            stage: None,
            epoch,
            loss: Some(0.1 + 0.2),
            terms: BTreeMap::from([("separation".to_owned(), 0.25)]),
            lr: 1e-3,
            used_clusters: 9,
            entropy: 0.5,
            smallest_share: 0.0,
            largest_share: 0.4,
            skipped_steps: 0,
            acc: Some(0.75),
            nmi: None,
            regrouped: false,
            inside: None,
            seconds: 1.5,
            loading_seconds: 0.01,
            wall_seconds: None,
            peak_memory_bytes: None,
            machine: None,
        }
    }

    #[test]
    fn lines_past_the_checkpoint_are_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let mut log = Log::open(&path, 0).unwrap();
        (1..=4).for_each(|epoch| log.append(&record(epoch)).unwrap());
        drop(log);
        // Half a line, as a power cut leaves it.
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"restart\":1,").unwrap();
        let mut log = Log::open(&path, 2).unwrap();
        assert_eq!(log.lines(), 2);
        log.append(&record(3)).unwrap();
        log.sync().unwrap();
        let epochs: Vec<_> = read(&path).unwrap().iter().map(|r| r.epoch).collect();
        assert_eq!(epochs, [1, 2, 3]);
    }

    #[test]
    fn a_log_that_lost_lines_keeps_what_it_has() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        Log::open(&path, 0).unwrap().append(&record(1)).unwrap();
        assert_eq!(Log::open(&path, 5).unwrap().lines(), 1);
    }

    #[test]
    fn the_lines_of_another_log_are_taken_over_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let mut log = Log::open(&path("a.jsonl"), 0).unwrap();
        log.append(&record(1)).unwrap();
        let mut other = Log::open(&path("b.jsonl"), 0).unwrap();
        (2..=4).for_each(|epoch| other.append(&record(epoch)).unwrap());
        let text = std::fs::read_to_string(path("b.jsonl")).unwrap();
        log.take_over(&path("b.jsonl"), 2).unwrap();
        assert_eq!(log.lines(), 3);
        log.take_over(&path("gone.jsonl"), 7).unwrap();
        log.append(&record(9)).unwrap();
        let found = std::fs::read_to_string(path("a.jsonl")).unwrap();
        assert!(text.starts_with(found.lines().nth(1).unwrap()), "{found}");
        assert_eq!(read(&path("a.jsonl")).unwrap().iter().map(|r| r.epoch).collect::<Vec<_>>(), [1, 2, 3, 9]);
    }

    #[test]
    fn an_epoch_without_a_finite_loss_can_be_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        let broken = EpochRecord { loss: None, ..record(1) };
        Log::open(&path, 0).unwrap().append(&broken).unwrap();
        assert_eq!(read(&path).unwrap(), [broken]);
        // What earlier versions wrote for it.
        let text = std::fs::read_to_string(&path).unwrap().replacen("{", "{\"loss\":null,", 1);
        std::fs::write(&path, text).unwrap();
        assert_eq!(read(&path).unwrap()[0].loss, None);
    }

    #[test]
    fn timings_are_the_last_fields_and_missing_metrics_are_absent() {
        let text = serde_json::to_string(&record(1)).unwrap();
        assert!(text.ends_with(",\"seconds\":1.5,\"loading_seconds\":0.01}"), "{text}");
        let full = EpochRecord { wall_seconds: Some(2.0), peak_memory_bytes: Some(4096), ..record(1) };
        let full = serde_json::to_string(&full).unwrap();
        let cut = |line: &str| line.split(",\"seconds\":").next().map(str::to_owned);
        assert_eq!(cut(&full), cut(&text));
        assert!(full.ends_with(",\"wall_seconds\":2.0,\"peak_memory_bytes\":4096}"), "{full}");
        assert!(text.contains("\"acc\":0.75") && !text.contains("nmi"));
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.jsonl");
        std::fs::write(&path, "{}\n").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("line 1"), "{error}");
    }
}
