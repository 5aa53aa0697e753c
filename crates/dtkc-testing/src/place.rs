//! A folder of its own for a test, and programs that run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dtkc_dataset::Dataset;
use tempfile::TempDir;

/// A folder of its own for one test, removed at its end, with a program that runs in it.
#[derive(Debug)]
pub struct Place {
    folder: TempDir,
    program: Option<PathBuf>,
}

/// What a run of a program said.
#[derive(Debug)]
pub struct Said {
    /// The exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

impl Place {
    /// An empty folder, and no program.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), program: None }
    }

    /// An empty folder for one of our programs, by its name.
    pub fn of(name: &str) -> Self {
        Self { program: Some(program(name)), ..Self::new() }
    }

    /// The folder itself.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where a file of that name is or would be.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    /// Writes a file, in folders that are made where they are missing.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file's content.
    #[track_caller]
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// A file's content as text.
    #[track_caller]
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// A dataset in the folder.
    #[track_caller]
    pub fn open(&self, name: &str) -> Dataset {
        Dataset::open(self.path(name)).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Everything in the folder itself, hidden files too, sorted.
    pub fn names(&self) -> Vec<String> {
        names(self.folder())
    }

    /// The program, about to run inside the folder, so that files go by their names.
    #[track_caller]
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program.as_ref().expect("made with Place::of"));
        command.current_dir(self.folder());
        command
    }

    /// Runs the program inside the folder.
    #[track_caller]
    pub fn run<S: AsRef<std::ffi::OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Said {
        self.command().args(args).output().unwrap().into()
    }

    /// Runs the program with the words of a line.
    #[track_caller]
    pub fn run_line(&self, line: &str) -> Said {
        self.run(line.split_whitespace())
    }

    /// Runs the program, which must succeed, and opens the dataset that it wrote. One that an earlier call made is
    /// replaced.
    #[track_caller]
    pub fn made(&self, args: &[&str], out: &str) -> Dataset {
        let force: &[&str] = if args.contains(&"--force") { &[] } else { &["--force"] };
        self.run([args, force].concat()).ok();
        self.open(out)
    }

    /// Runs the program, which must fail with one sentence and leave nothing of its output. Gives the sentence.
    #[track_caller]
    pub fn fails(&self, args: &[&str], code: i32) -> String {
        let before = self.names();
        let said = self.run(args);
        assert_eq!(said.code, code, "{args:?}: {said:?}");
        assert_eq!(said.err.trim_end().lines().count(), 1, "one sentence: {}", said.err);
        assert!(said.err.starts_with("error: "), "{}", said.err);
        assert!(!said.err.contains("panicked"), "{}", said.err);
        assert_eq!(self.names(), before, "{args:?} left something behind");
        said.err
    }
}

impl Said {
    /// Standard output of a run that must have succeeded.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:?}");
        self.out
    }

    /// One line on standard error with these words, nothing on standard output.
    #[track_caller]
    pub fn fails(self, code: i32, words: &str) {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.err.contains(words), "{self:?}");
        assert_eq!((self.err.trim_end().lines().count(), self.out.as_str()), (1, ""), "{self:?}");
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// The path of one of our programs, built into the same target folder as the running test.
///
/// # Panics
/// If the program has not been built. Its own crate's tests build it; for others `cargo build --release --workspace`
/// does, and `scripts/test.sh` runs it first.
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own path");
    let folder = test.ancestors().nth(2).expect("a test lies in target/PROFILE/deps");
    let path = folder.join(name).with_extension(std::env::consts::EXE_EXTENSION);
    assert!(path.is_file(), "{} is missing: run `cargo build --release --workspace` first", path.display());
    path
}

/// Names of what is in a folder, hidden files too, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
