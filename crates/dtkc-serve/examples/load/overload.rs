//! Far more load than the service can bear: what it answers, what memory it takes, how soon it is over it.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use crate::client::{Client, post};
use crate::measure::{files, groups, spread, throughput};

/// Images per request.
const GROUP: usize = 32;

/// Requests that leave on a schedule, whatever the answers say.
struct Schedule {
    address: SocketAddr,
    bodies: Vec<(usize, Vec<u8>)>,
    /// Connections. Each may fall behind by the time of one answer and catches up, so there are enough of them.
    clients: usize,
    /// Between two requests of one connection.
    pause: Duration,
    time: Duration,
}

/// How many answers there were of each kind.
type Answers = BTreeMap<String, usize>;

/// Sends `times` the load that the service can bear for `time` and checks what must hold.
pub fn overload(address: SocketAddr, folder: &Path, time: Duration, times: f64) -> anyhow::Result<()> {
    let bodies = groups(folder, GROUP)?;
    let single = post("/v1/assign", "image/png", &files(folder)?[0]);
    let bearable = throughput(address, &bodies, 4, Duration::from_secs(5))?;
    // The same pause as afterwards: a processor that has just been idle is slower at first.
    std::thread::sleep(Duration::from_secs(1));
    let before = single_ms(address, &single)?;
    let memory_before = memory(address)?;
    println!("sustainable: {bearable:.0} images/s; one image takes {before:.2} ms");

    let wanted = bearable * times / GROUP as f64;
    let clients = ((wanted * 0.25).ceil() as usize).clamp(64, 400);
    let seconds = time.as_secs_f64();
    println!("overload: {wanted:.0} requests/s of {GROUP} images over {clients} connections for {seconds:.0} s");
    let schedule = Schedule { address, bodies, clients, pause: Duration::from_secs_f64(clients as f64 / wanted), time };
    let (answers, highest) = schedule.run()?;
    std::thread::sleep(Duration::from_secs(1));
    let after = single_ms(address, &single)?;

    let offered = answers.values().sum::<usize>() as f64 * GROUP as f64 / seconds / bearable;
    let served = answers.get("200").copied().unwrap_or(0) as f64 * GROUP as f64 / seconds;
    let grown = (highest - memory_before) / 1e6;
    println!("answers: {answers:?}");
    println!("offered: {offered:.1} times what can be served; served meanwhile: {served:.0} images/s");
    println!("memory: {:.0} MB before, at most {grown:+.0} MB meanwhile (at most +100)", memory_before / 1e6);
    println!("one image one second after: {after:.2} ms ({before:.2} ms before)");
    if offered < times * 0.95 {
        bail!("only {offered:.1} times what can be served was offered; the machine has no room for the clients");
    }
    if !answers.keys().all(|status| ["200", "429", "503"].contains(&status.as_str())) {
        bail!("answers other than 200, 429 and 503");
    }
    if grown > 100.0 {
        bail!("memory grew by more than 100 MB");
    }
    // Half as slow again, or a quarter of a millisecond, is the noise of a busy machine.
    if after > before * 1.5 + 0.25 {
        bail!("one second after the load single requests are slower than before");
    }
    Ok(())
}

impl Schedule {
    /// Sends everything; gives the answers and the most memory that the service took meanwhile.
    fn run(&self) -> anyhow::Result<(Answers, f64)> {
        let all = Mutex::new(Answers::new());
        let started = Instant::now();
        let highest = std::thread::scope(|scope| -> anyhow::Result<f64> {
            for number in 0..self.clients {
                let all = &all;
                scope.spawn(move || {
                    let seen = self.client(number, started);
                    if let Ok(mut all) = all.lock() {
                        seen.into_iter().for_each(|(what, count)| *all.entry(what).or_default() += count);
                    }
                });
            }
            let mut highest = 0.0f64;
            while started.elapsed() < self.time {
                std::thread::sleep(Duration::from_millis(500));
                highest = highest.max(memory(self.address)?);
            }
            Ok(highest)
        })?;
        Ok((all.into_inner().map_err(|_| anyhow!("a client panicked"))?, highest))
    }

    fn client(&self, number: usize, started: Instant) -> Answers {
        let mut client = Client::new(self.address);
        let mut seen = Answers::new();
        let mut due = started + self.pause.mul_f64(number as f64 / self.clients as f64);
        for n in number.. {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if started.elapsed() >= self.time {
                break;
            }
            let what = match client.send(&self.bodies[n % self.bodies.len()].1) {
                Ok(answer) if answer.status == 429 && answer.retry_after.is_none() => "429 without Retry-After".into(),
                Ok(answer) => answer.status.to_string(),
                Err(error) => error.kind().to_string(),
            };
            *seen.entry(what).or_default() += 1;
            due += self.pause;
        }
        seen
    }
}

/// Median of one image, one after the other.
fn single_ms(address: SocketAddr, request: &[u8]) -> anyhow::Result<f64> {
    let mut client = Client::new(address);
    let mut times = Vec::new();
    for _ in 0..50 {
        let started = Instant::now();
        let answer = client.send(request)?;
        if answer.status != 200 {
            bail!("a single request was answered {}", answer.status);
        }
        times.push(started.elapsed());
    }
    Ok(spread(&times).0)
}

/// Resident memory of the service, in bytes.
fn memory(address: SocketAddr) -> anyhow::Result<f64> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let name = "process_resident_memory_bytes";
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.ok_or_else(|| anyhow!("/metrics has no {name}"))
}
