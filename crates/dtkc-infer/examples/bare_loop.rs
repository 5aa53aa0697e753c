//! Images per second of a bare ONNX Runtime loop on pixels that are already in memory: the most that labelling
//! with the same threads could reach.
//!
//!     cargo run --release -p dtkc-infer --example bare_loop -- MODEL [THREADS] [BATCH] [SECONDS]

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match measure(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let number = |place: usize, default: usize| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let Some(name) = arguments.first() else {
        return Err("usage: bare_loop MODEL [THREADS=1] [BATCH=64] [SECONDS=3]".into());
    };
    let (threads, batch, seconds) = (number(1, 1)?, number(2, 64)?, number(3, 3)?);
    let runtime = Runtime::find(None)?;
    let model = ModelFile::open(name)?;
    let mut sessions = Vec::new();
    for _ in 0..threads.max(1) {
        sessions.push(Session::new(&runtime, &model, &SessionOptions::default())?);
    }
    let image = model.image().ok_or("the model takes no images")?;
    let images: Vec<u8> = (0..16 * batch * image.bytes()).map(|i| ((i * 2_654_435_761) >> 7) as u8).collect();
    let length = Duration::from_secs(seconds as u64);
    let used = cpu_seconds();
    let total = std::thread::scope(|scope| {
        let each = |session| scope.spawn(|| run(session, &images, batch, length));
        let workers: Vec<_> = sessions.into_iter().map(each).collect();
        workers.into_iter().map(|worker| worker.join().map_err(|_| "a worker panicked")?).sum::<Result<f64, String>>()
    })?;
    println!("{total:.0} images/s ({threads} threads, batches of {batch})");
    if let (Some(before), Some(after)) = (used, cpu_seconds()) {
        let wall = total * seconds as f64;
        println!("{:.0} images per CPU second, which other programs disturb less", wall / (after - before));
    }
    Ok(())
}

/// Processor time of this process so far, where Linux tells it.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The fields after the program's name, which may hold spaces; 11 and 12 are user and system time in 1/100 s.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / 100.0)
}

/// Images per second of one session.
fn run(mut session: Session, images: &[u8], batch: usize, length: Duration) -> Result<f64, String> {
    let bytes = images.len() / 16;
    let mut once = |part: usize| {
        let pixels = &images[part * bytes..(part + 1) * bytes];
        session.run(pixels, batch).map_err(|error| error.to_string())
    };
    once(0)?;
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < length {
        once((done / batch) % 16)?;
        done += batch;
    }
    Ok(done as f64 / start.elapsed().as_secs_f64())
}
