//! Watches over the targets' processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::{Args, child, targets};

const LOOK: Duration = Duration::from_millis(50);
/// After so many findings a target is left alone.
const MOST_FINDINGS: usize = 5;

struct Outcome {
    executions: u64,
    findings: usize,
    highest_mib: u64,
}

/// Runs the targets one after the other; false where something was found.
pub fn run(args: &Args) -> anyhow::Result<bool> {
    let names: Vec<&str> = match args.target.is_empty() {
        true => targets::names(),
        false => args.target.iter().map(String::as_str).collect(),
    };
    let time = Duration::from_secs_f64(args.minutes * 60.0 / names.len() as f64);
    let (mut executions, mut findings) = (0, 0);
    for name in &names {
        let started = Instant::now();
        let outcome = run_target(name, args, time)?;
        let seconds = started.elapsed().as_secs_f64();
        println!(
            "{name:12} {:9} executions in {seconds:6.1} s ({:6.0} per second), at most {} MiB, {} findings",
            outcome.executions,
            outcome.executions as f64 / seconds,
            outcome.highest_mib,
            outcome.findings
        );
        executions += outcome.executions;
        findings += outcome.findings;
    }
    println!("{executions} executions over {} targets, {findings} findings", names.len());
    Ok(findings == 0)
}

fn run_target(name: &str, args: &Args, time: Duration) -> anyhow::Result<Outcome> {
    targets::named(name)?;
    let folder = scratch()?;
    let place = folder.path().join("place");
    let mut outcome = Outcome { executions: 0, findings: 0, highest_mib: 0 };
    let mut next = args.from;
    let until = Instant::now() + time;
    let last = args.executions.map(|count| args.from + count);
    while outcome.findings < MOST_FINDINGS {
        fs_err::write(&place, next.to_le_bytes())?;
        let child = start(name, next, &place)?;
        let limits = Watch { until, last, memory_mib: args.memory_mib, hang: Duration::from_secs(args.hang_seconds) };
        let ended = watch(child, &place, &limits, &mut outcome.highest_mib)?;
        let at = number(&place)?;
        outcome.executions += at.saturating_sub(next);
        let Some(problem) = ended else { break };
        outcome.findings += 1;
        outcome.executions += 1;
        let file = save(name, at, &args.findings)?;
        println!("{name}: input {at}: {problem}; it is in {}", file.display());
        next = at + 1;
    }
    Ok(outcome)
}

/// In memory where the system has such a place: millions of files are written.
fn scratch() -> anyhow::Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? })
}

fn start(name: &str, from: u64, place: &Path) -> anyhow::Result<Child> {
    Command::new(std::env::current_exe()?)
        .args(["--target", name, "--from", &from.to_string(), "--child"])
        .arg(place)
        .stdout(Stdio::null())
        .spawn()
        .context("the target's process cannot be started")
}

struct Watch {
    until: Instant,
    last: Option<u64>,
    memory_mib: u64,
    hang: Duration,
}

/// Waits for the end; says what was wrong with it, or nothing where time or executions are used up.
fn watch(mut child: Child, place: &Path, watch: &Watch, highest: &mut u64) -> anyhow::Result<Option<String>> {
    let (mut at, mut since) = (number(place)?, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(format!("the process ended ({status})")));
        }
        let now = number(place)?;
        if now != at {
            (at, since) = (now, Instant::now());
        }
        let memory = resident_mib(child.id());
        *highest = memory.max(*highest);
        let is_over = match watch.last {
            Some(last) => at >= last,
            None => Instant::now() >= watch.until,
        };
        let problem = match () {
            () if memory > watch.memory_mib => Some(format!("it takes {memory} MiB")),
            () if since.elapsed() > watch.hang => Some(format!("it takes longer than {} s", watch.hang.as_secs())),
            () if is_over => None,
            () => {
                std::thread::sleep(LOOK);
                continue;
            }
        };
        child.kill()?;
        child.wait()?;
        return Ok(problem);
    }
}

fn number(place: &Path) -> anyhow::Result<u64> {
    let bytes = fs_err::read(place)?;
    Ok(bytes.first_chunk().map_or(0, |first| u64::from_le_bytes(*first)))
}

/// The most memory that a process has had, where the system says so (Linux).
fn resident_mib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).map_or(0, |kib| kib / 1024)
}

fn save(name: &str, at: u64, findings: &Path) -> anyhow::Result<PathBuf> {
    fs_err::create_dir_all(findings)?;
    let file = findings.join(format!("{name}-{at}"));
    child::write(name, at, &file)?;
    Ok(file)
}
