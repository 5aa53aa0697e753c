//! One cell in a process of its own.
//!
//! The process is this program itself. What it says on standard error is passed on line by line, and why it failed is
//! taken from there. It is stopped by closing its standard input, which also happens when this process is killed: so no
//! cell is left at work alone, and every system can do it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use dtkc_observe::Observer;

use crate::error::TrainError;

/// The flag of `fit` and `resume` that makes the end of standard input an interrupt.
pub const STOP_WITH_INPUT: &str = "--stop-with-input";
/// The exit code of work that was interrupted and is saved.
const INTERRUPTED: i32 = 130;
/// How often the process is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    /// All is done.
    Well,
    /// It was interrupted and has saved what it had.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
}

/// Who hears what a process says.
pub(super) trait Listener: Sync {
    /// A restart is complete.
    fn restart(&self);
    /// How far it is.
    fn progress(&self, text: &str);
    /// A sentence worth keeping.
    fn say(&self, text: &str);
    /// A sentence that somebody should read.
    fn warn(&self, text: &str);
}

/// Runs `program` to its end, or stops it as soon as the observer asks for that.
pub(super) fn run(
    program: &Path,
    arguments: &[OsString],
    listener: &dyn Listener,
    observer: &dyn Observer,
) -> Result<Ended, TrainError> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        let text = format!("{} cannot be started for a cell of its own ({error})", program.display());
        std::io::Error::new(error.kind(), text)
    })?;
    let (mut input, said) = (child.stdin.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let heard = scope.spawn(move || said.map(|said| hear(said, listener)).unwrap_or_default());
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if observer.stop() {
                drop(input.take());
            }
            std::thread::sleep(LOOK);
        };
        Ok(ending(status, heard.join().unwrap_or_default()))
    })
}

/// What a process said that tells why it failed.
#[derive(Debug, Default)]
struct Heard {
    /// The sentence after `error:`.
    error: Option<String>,
    /// The message of a panic.
    panic: Option<String>,
}

/// Passes on every line.
fn hear(said: impl Read, listener: &dyn Listener) -> Heard {
    let mut heard = Heard::default();
    let (mut is_panic, mut line) = (false, Vec::new());
    let mut said = BufReader::new(said);
    // A pipe that breaks is one that ends.
    while said.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        if is_panic && heard.panic.is_none() {
            heard.panic = Some(text);
        } else if let Some(error) = text.strip_prefix("error: ") {
            heard.error = Some(error.to_owned());
        } else if text.contains(" panicked at ") {
            is_panic = true;
        } else {
            pass_on(&text, listener);
        }
    }
    heard
}

fn pass_on(text: &str, listener: &dyn Listener) {
    // What it says about being stopped is said once, by the comparison.
    let is_about_stopping = text.starts_with("stopped: ") || text.starts_with("stopping at the next safe place");
    if text.is_empty() || is_about_stopping || text.starts_with("note: run with `RUST_BACKTRACE") {
        return;
    }
    if let Some(progress) = text.strip_prefix("train: ") {
        listener.progress(progress);
    } else if let Some(warning) = text.strip_prefix("warning: ") {
        listener.warn(warning);
    } else {
        listener.say(text);
        if is_end_of_restart(text) {
            listener.restart();
        }
    }
}

/// `restart 3/20: ...`
fn is_end_of_restart(text: &str) -> bool {
    let is_number = |text: &str| text.parse::<usize>().is_ok();
    let numbers = text.strip_prefix("restart ").and_then(|rest| rest.split_once(": ")).map(|(numbers, _)| numbers);
    numbers.and_then(|numbers| numbers.split_once('/')).is_some_and(|(a, b)| is_number(a) && is_number(b))
}

fn ending(status: ExitStatus, heard: Heard) -> Ended {
    match (status.code(), heard) {
        (Some(0), _) => Ended::Well,
        (Some(INTERRUPTED), _) => Ended::Stopped,
        (Some(_), Heard { error: Some(error), .. }) => Ended::Failed(error),
        (_, Heard { panic: Some(panic), .. }) => {
            Ended::Failed(format!("its process broke down ({panic}), which is a fault of the program"))
        }
        // Nobody but the system sends this signal on its own account.
        (None, _) if status.to_string().contains("SIGKILL") => Ended::Failed(
            "its process was killed, most likely because memory ran out; end other programs, or leave it out (--skip)"
                .into(),
        ),
        _ => Ended::Failed(format!("its process broke down ({status}) and said nothing")),
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering};

    use dtkc_observe::Silent;

    use super::*;

    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    impl Listener for Notes {
        fn restart(&self) {
            self.0.lock().unwrap().push("restart".into());
        }
        fn progress(&self, text: &str) {
            self.0.lock().unwrap().push(format!("progress {text}"));
        }
        fn say(&self, text: &str) {
            self.0.lock().unwrap().push(format!("say {text}"));
        }
        fn warn(&self, text: &str) {
            self.0.lock().unwrap().push(format!("warn {text}"));
        }
    }

    fn shell(script: &str, observer: &dyn Observer) -> (Ended, Vec<String>) {
        let notes = Notes::default();
        let arguments = ["-c".into(), script.into()];
        let ended = run(Path::new("/bin/sh"), &arguments, &notes, observer).unwrap();
        (ended, notes.0.into_inner().unwrap())
    }

    #[test]
    fn lines_are_passed_on_as_what_they_are() {
        let script = "exec >&2; echo 'dtkc (plus): 2 restarts'; echo 'train: 5 of 10 images'; echo; \
                      echo 'restart 1/2: 3 epochs'; echo 'warning: restart 1: dull'; echo 'stopped: x'; printf half";
        let (ended, notes) = shell(script, &Silent);
        assert_eq!(ended, Ended::Well);
        let expected = [
            "say dtkc (plus): 2 restarts",
            "progress 5 of 10 images",
            "say restart 1/2: 3 epochs",
            "restart",
            "warn restart 1: dull",
            "say half",
        ];
        assert_eq!(notes, expected);
    }

    #[test]
    fn every_end_has_its_sentence() {
        let failed = |script: &str| match shell(script, &Silent).0 {
            Ended::Failed(reason) => reason,
            other => panic!("{script}: {other:?}"),
        };
        assert_eq!(failed("echo 'error: too few images' >&2; exit 1"), "too few images");
        assert!(failed("kill -KILL $$").contains("memory ran out"));
        assert!(failed("kill -SEGV $$").contains("SIGSEGV"));
        let panic = "echo \"thread 'main' panicked at src/x.rs:1:2:\" >&2; echo 'no such luck' >&2; exit 101";
        assert!(failed(panic).contains("(no such luck)"));
        assert!(failed("exit 3").contains("exit status: 3"));
        assert_eq!(shell("exit 130", &Silent).0, Ended::Stopped);
        let missing = run(Path::new("/no/such/program"), &[], &Notes::default(), &Silent).unwrap_err().to_string();
        assert!(missing.contains("/no/such/program"), "{missing}");
    }

    #[test]
    fn a_stop_closes_the_input() {
        /// Asks to stop from the second look on, when the process is surely there.
        struct Later(AtomicBool);
        impl Observer for Later {
            fn stop(&self) -> bool {
                self.0.swap(true, Ordering::SeqCst)
            }
        }
        // Without the end of its input it would wait for ever.
        let (ended, _) = shell("cat > /dev/null; exit 130", &Later(AtomicBool::new(false)));
        assert_eq!(ended, Ended::Stopped);
    }
}
