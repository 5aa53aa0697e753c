//! Helpers for the end-to-end tests in `tests/tests`, one file per user story.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dtkc_testing::{Place, Said, program};
use serde_json::Value;

/// Runs one of our programs in a test's folder, so that files go by their names.
///
/// # Panics
/// If it cannot be started.
#[track_caller]
pub fn run(place: &Place, name: &str, arguments: &[&str]) -> Said {
    let output = Command::new(program(name)).current_dir(place.folder()).args(arguments).output();
    output.unwrap_or_else(|error| panic!("{name} did not start: {error}")).into()
}

/// Runs one of our programs with the words of a line; it must succeed. Gives its standard output.
///
/// # Panics
/// If it fails, with all that it said.
#[track_caller]
pub fn run_well(place: &Place, line: &str) -> String {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    run(place, name, &words.collect::<Vec<_>>()).ok()
}

/// A running service; ended when dropped.
#[derive(Debug)]
pub struct Service {
    child: Child,
    url: String,
}

impl Service {
    /// Starts `dtkc-serve` with a model of the place's folder.
    ///
    /// # Panics
    /// If it does not come up.
    #[track_caller]
    pub fn start(place: &Place, model: &str) -> Self {
        let mut command = Command::new(program("dtkc-serve"));
        command.args(["--port", "0", "--log-level", "warn", "--workers", "1", "--model"]);
        let child = command.arg(place.path(model)).stdout(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("dtkc-serve did not start: {error}"));
        let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines().map_while(Result::ok);
        let url = lines.by_ref().find_map(|line| Some(line.trim().strip_prefix("page")?.trim().to_owned()));
        // Keep reading, so that the service never writes into a closed pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("it says where its page is").trim_end_matches('/').to_owned() }
    }

    /// What `/v1/assign` answers to a body.
    ///
    /// # Panics
    /// If it refuses the body.
    #[track_caller]
    pub fn assign(&self, content_type: &str, body: &[u8]) -> Value {
        let request = ureq::post(format!("{}/v1/assign", self.url)).header("content-type", content_type);
        let mut answer = request.send(body).unwrap_or_else(|error| panic!("{error}"));
        let text = answer.body_mut().read_to_string().unwrap_or_else(|error| panic!("{error}"));
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
