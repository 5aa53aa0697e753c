//! The files of a run, and the lock that keeps two processes from using it at the same time.

use std::path::{Path, PathBuf};

use dtkc_files::{Lock, LockError, is_leftover};

use crate::error::TrainError;

/// The log's name in a run directory.
pub const LOG: &str = "log.jsonl";

/// A run directory that this process holds.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
    // Held for their locks alone: the operating system releases them however the process ends.
    _lock: Lock,
    /// Of the run that this is a part of.
    _shared: Option<Lock>,
}

/// What `fit` does with a directory that already holds a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// Refuse, so that nothing is lost by accident.
    Refuse,
    /// Remove the files of the old run, and only those.
    Replace,
}

impl RunDir {
    /// Creates a directory for a new run.
    pub fn create(root: &Path, existing: Existing) -> Result<Self, TrainError> {
        if root.is_file() {
            return Err(TrainError::NotAFolder { path: root.to_owned() });
        }
        fs_err::create_dir_all(root)?;
        let run = Self { root: root.to_owned(), _lock: lock(root, Lock::take)?, _shared: None };
        run.remove_partials()?;
        check_new(root, existing)?;
        if run.config().exists() {
            run.remove_files()?;
        }
        fs_err::create_dir_all(run.checkpoints())?;
        Ok(run)
    }

    /// Opens an existing run to change it.
    pub fn open(root: &Path) -> Result<Self, TrainError> {
        require_run(root)?;
        let run = Self { root: root.to_owned(), _lock: lock(root, Lock::take)?, _shared: None };
        run.remove_partials()?;
        Ok(run)
    }

    /// Opens a part of the run at `root` to change it, or makes it; other processes may have other parts meanwhile, and none the run.
    pub fn part(root: &Path, name: &str) -> Result<Self, TrainError> {
        require_run(root)?;
        let shared = Some(lock(root, Lock::share)?);
        let own = parts_path(root).join(name);
        fs_err::create_dir_all(&own)?;
        let part = Self { _lock: lock(&own, Lock::take)?, root: own, _shared: shared };
        fs_err::create_dir_all(part.checkpoints())?;
        part.remove_partials()?;
        Ok(part)
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The resolved configuration.
    pub fn config(&self) -> PathBuf {
        config_path(&self.root)
    }

    /// One line per epoch.
    pub fn log(&self) -> PathBuf {
        self.root.join(LOG)
    }

    /// One line per number of clusters that `auto` has looked at.
    pub fn trials(&self) -> PathBuf {
        trials_path(&self.root)
    }

    /// How far the network has come that is asked for the number of clusters.
    pub fn search(&self) -> PathBuf {
        search_path(&self.root)
    }

    /// What a limit on the time allows.
    pub fn budget(&self) -> PathBuf {
        self.root.join("budget.json")
    }

    /// The figures of all restarts.
    pub fn summary(&self) -> PathBuf {
        summary_path(&self.root)
    }

    /// The exported model.
    pub fn model(&self) -> PathBuf {
        model_path(&self.root)
    }

    /// What it found, as a page for people.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }

    /// The folder of the checkpoints.
    pub fn checkpoints(&self) -> PathBuf {
        self.root.join("checkpoints")
    }

    /// The folder of its parts, which other processes work on.
    pub fn parts(&self) -> PathBuf {
        parts_path(&self.root)
    }

    /// Everything that is needed to continue a restart.
    pub fn last(&self, restart: usize) -> PathBuf {
        last_path(&self.root, restart)
    }

    /// The network of a restart's best epoch.
    pub fn best(&self, restart: usize) -> PathBuf {
        best_path(&self.root, restart)
    }

    /// What the pretraining of a restart has made.
    pub fn pretrained(&self, restart: usize) -> PathBuf {
        pretrained_path(&self.root, restart)
    }

    /// Removes what a killed process was about to write. Nobody else writes here while the lock is held.
    fn remove_partials(&self) -> Result<(), TrainError> {
        for folder in [self.root.clone(), self.checkpoints()].into_iter().filter(|folder| folder.is_dir()) {
            for entry in fs_err::read_dir(folder)? {
                let entry = entry?;
                if is_leftover(&entry.file_name()) {
                    fs_err::remove_file(entry.path())?;
                }
            }
        }
        Ok(())
    }

    fn remove_files(&self) -> Result<(), TrainError> {
        // The configuration goes first: what is left is then no longer taken for a run.
        let figures = [self.config(), self.log(), self.trials(), self.budget(), self.summary()];
        for file in figures.into_iter().chain([self.model(), self.report()]) {
            if file.exists() {
                fs_err::remove_file(file)?;
            }
        }
        for folder in [self.checkpoints(), self.parts()].into_iter().filter(|folder| folder.exists()) {
            fs_err::remove_dir_all(folder)?;
        }
        Ok(())
    }
}

/// The resolved configuration of the run at `root`.
pub fn config_path(root: &Path) -> PathBuf {
    root.join("config.toml")
}

/// The exported model of the run at `root`.
pub fn model_path(root: &Path) -> PathBuf {
    root.join("model.onnx")
}

/// The summary of the run at `root`.
pub fn summary_path(root: &Path) -> PathBuf {
    root.join("summary.json")
}

/// What `auto` has found about numbers of clusters for the run at `root`.
pub fn trials_path(root: &Path) -> PathBuf {
    root.join("clusters.jsonl")
}

/// The network that is asked for the number of clusters of the run at `root`.
pub fn search_path(root: &Path) -> PathBuf {
    root.join("checkpoints").join("clusters.ckpt")
}

fn parts_path(root: &Path) -> PathBuf {
    root.join("parts")
}

/// Everything that is needed to continue `restart` of the run at `root`.
pub fn last_path(root: &Path, restart: usize) -> PathBuf {
    root.join("checkpoints").join(format!("restart-{restart:03}.last.ckpt"))
}

/// The network of the best epoch of `restart` of the run at `root`.
pub fn best_path(root: &Path, restart: usize) -> PathBuf {
    root.join("checkpoints").join(format!("restart-{restart:03}.best.ckpt"))
}

/// What the pretraining of `restart` of the run at `root` has made.
pub fn pretrained_path(root: &Path, restart: usize) -> PathBuf {
    root.join("checkpoints").join(format!("restart-{restart:03}.pretrained.ckpt"))
}

/// What evaluation and export read of the run at `root`, and what would be lost with it.
pub fn files_read(root: &Path, restart: usize) -> impl Iterator<Item = PathBuf> {
    let mut files = vec![config_path(root), summary_path(root), root.join(LOG), best_path(root, restart)];
    let others = std::fs::read_dir(root.join("checkpoints")).into_iter().flatten().flatten();
    files.extend(others.map(|entry| entry.path()));
    files.into_iter()
}

/// Fails unless `root` holds a run.
pub fn require_run(root: &Path) -> Result<(), TrainError> {
    if config_path(root).is_file() { Ok(()) } else { Err(TrainError::NoRun { path: root.to_owned() }) }
}

fn lock(root: &Path, take: impl Fn(&Path) -> Result<Lock, LockError>) -> Result<Lock, TrainError> {
    let path = root.join(".lock");
    match take(&path) {
        Ok(lock) => Ok(lock),
        Err(LockError::Held(holder)) => Err(TrainError::Locked { path: root.to_owned(), holder }),
        Err(LockError::Io(source)) => Err(TrainError::Lock { path, source }),
    }
}

/// Refuses a place where no new run can be. Nothing is made or changed.
pub fn check_new(root: &Path, existing: Existing) -> Result<(), TrainError> {
    let path = root.to_owned();
    match config_path(root).exists() {
        _ if root.is_file() => Err(TrainError::NotAFolder { path }),
        true if existing == Existing::Refuse => Err(TrainError::RunExists { path }),
        false if root.is_dir() && holds_foreign_files(root)? => Err(TrainError::ForeignFolder { path }),
        _ => Ok(()),
    }
}

/// Files that are neither hidden nor left by a run that was stopped before its configuration was written.
fn holds_foreign_files(root: &Path) -> Result<bool, TrainError> {
    for entry in fs_err::read_dir(root)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && name != "checkpoints" && name != "parts" {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_not_overwritten_unless_asked() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("run");
        let run = RunDir::create(&root, Existing::Refuse).unwrap();
        std::fs::write(run.config(), "x").unwrap();
        std::fs::write(run.last(0), "x").unwrap();
        std::fs::write(run.report(), "x").unwrap();
        drop(run);
        let error = RunDir::create(&root, Existing::Refuse).unwrap_err().to_string();
        assert!(error.contains("resume") && error.contains("--force"), "{error}");
        std::fs::write(root.join("notes.txt"), "mine").unwrap();
        let run = RunDir::create(&root, Existing::Replace).unwrap();
        assert!(!run.config().exists() && !run.last(0).exists() && !run.report().exists());
        assert!(root.join("notes.txt").exists(), "only the run's own files go");
    }

    #[test]
    fn a_second_process_is_refused_while_the_first_holds_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let first = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        std::fs::write(first.config(), "x").unwrap();
        // A lock belongs to an open file, so a second open in this process stands for another process.
        let error = RunDir::open(folder.path()).unwrap_err().to_string();
        let process = format!("process {}", std::process::id());
        assert!(error.contains("another process (") && error.contains(&process), "{error}");
        drop(first);
        RunDir::open(folder.path()).unwrap();
    }

    #[test]
    fn parts_are_held_by_one_process_each_and_the_run_by_none_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        std::fs::write(run.config(), "x").unwrap();
        assert!(matches!(RunDir::part(folder.path(), "restart-0"), Err(TrainError::Locked { .. })));
        drop(run);
        let parts = ["restart-0", "restart-1"].map(|name| RunDir::part(folder.path(), name).unwrap());
        assert!(matches!(RunDir::part(folder.path(), "restart-1"), Err(TrainError::Locked { .. })));
        assert!(matches!(RunDir::open(folder.path()), Err(TrainError::Locked { .. })));
        drop(parts);
        RunDir::create(folder.path(), Existing::Replace).unwrap();
        assert!(!folder.path().join("parts").exists());
    }

    #[test]
    fn what_a_killed_process_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::create(folder.path(), Existing::Refuse).unwrap();
        std::fs::write(run.config(), "x").unwrap();
        let names = [".restart-000.last.ckpt.17-0.partial", ".restart-000.last.ckpt.0123.writing"];
        let left = names.map(|name| run.checkpoints().join(name));
        left.iter().for_each(|path| std::fs::write(path, "half").unwrap());
        drop(run);
        let run = RunDir::open(folder.path()).unwrap();
        assert!(left.iter().all(|path| !path.exists()) && run.config().exists());
    }

    #[test]
    fn a_folder_that_is_not_a_run_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = RunDir::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("config.toml"), "{error}");
        std::fs::write(folder.path().join("thesis.tex"), "x").unwrap();
        let error = RunDir::create(folder.path(), Existing::Replace).unwrap_err().to_string();
        assert!(error.contains("other files"), "{error}");
    }
}
