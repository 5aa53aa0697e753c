//! The measurements.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::client::{Client, post, post_files};

/// Strokes on black, as in handwriting, of the model's size: compressible like the real thing.
pub fn write_images(model: &Path, folder: &Path, count: usize) -> anyhow::Result<()> {
    let shape = ModelFile::open(model)?.shape();
    fs_err::create_dir_all(folder)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (width, height) = (shape.width as u32, shape.height as u32);
    for n in 0..count {
        let mut image = image::GrayImage::new(width, height);
        let (mut x, mut y) = (random.random::<f32>() * width as f32, random.random::<f32>() * height as f32);
        let mut angle = random.random::<f32>() * 6.3;
        for _ in 0..2 * width {
            angle += random.random::<f32>() - 0.5;
            (x, y) =
                ((x + angle.cos()).clamp(2.0, width as f32 - 3.0), (y + angle.sin()).clamp(2.0, height as f32 - 3.0));
            for (dx, dy, value) in [(0, 0, 255), (1, 0, 180), (0, 1, 180), (1, 1, 90)] {
                image.put_pixel(x as u32 + dx, y as u32 + dy, image::Luma([value]));
            }
        }
        let path = folder.join(format!("{n:05}.png"));
        match shape.color.channels() {
            1 => image.save(&path),
            _ => image::DynamicImage::ImageLuma8(image).to_rgb8().save(&path),
        }
        .with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn files(folder: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> = fs_err::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "png"));
    paths.sort();
    if paths.is_empty() {
        bail!("{} holds no PNG", folder.display());
    }
    paths.iter().map(|path| Ok(fs_err::read(path)?)).collect()
}

/// Requests of `group` images each, over all files of the folder.
pub fn groups(folder: &Path, group: usize) -> anyhow::Result<Vec<(usize, Vec<u8>)>> {
    let files = files(folder)?;
    Ok(files.chunks(group).map(|some| (some.len(), post_files("/v1/assign", some))).collect())
}

/// Images per second over `clients` connections. Anything but 200 is an error.
pub fn throughput(
    address: SocketAddr,
    bodies: &[(usize, Vec<u8>)],
    clients: usize,
    time: Duration,
) -> anyhow::Result<f64> {
    let (next, images) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let problem: Mutex<Option<String>> = Mutex::new(None);
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..clients {
            scope.spawn(|| {
                let mut client = Client::new(address);
                while started.elapsed() < time {
                    let (count, body) = &bodies[next.fetch_add(1, Ordering::Relaxed) % bodies.len()];
                    match client.send(body) {
                        Ok(answer) if answer.status == 200 => {
                            images.fetch_add(*count, Ordering::Relaxed);
                        }
                        Ok(answer) => note(&problem, format!("status {}", answer.status)),
                        Err(error) => note(&problem, error.to_string()),
                    }
                }
            });
        }
    });
    if let Some(problem) = problem.lock().map_err(|_| anyhow!("a client panicked"))?.take() {
        bail!("the service did not answer every request: {problem}");
    }
    Ok(images.into_inner() as f64 / started.elapsed().as_secs_f64())
}

fn note(problem: &Mutex<Option<String>>, text: String) {
    if let Ok(mut problem) = problem.lock() {
        problem.get_or_insert(text);
    }
}

/// Prints the median of one image over HTTP and in this process; the two take turns, so that noise hits both.
pub fn latency(address: SocketAddr, folder: &Path, model: &Path, count: usize) -> anyhow::Result<()> {
    let files = files(folder)?;
    let runtime = Runtime::find(None)?;
    let model = ModelFile::open(model)?;
    let mut session = Session::new(&runtime, &model, &SessionOptions::default())?;
    let mut preparer = dtkc_image::Preparer::new(model.shape(), dtkc_image::Limits::default());
    let mut client = Client::new(address);
    let (mut http, mut direct) = (Vec::new(), Vec::new());
    for n in 0..count + 20 {
        let file = &files[n % files.len()];
        let request = post("/v1/assign", "image/png", file);
        let started = Instant::now();
        let answer = client.send(&request)?;
        http.push(started.elapsed());
        if answer.status != 200 {
            bail!("the service answered {}", answer.status);
        }
        // Low load: the machine is quiet before and after.
        std::thread::sleep(Duration::from_millis(5));
        let started = Instant::now();
        let pixels = preparer.prepare(file)?;
        session.run(&pixels, 1)?;
        direct.push(started.elapsed());
    }
    // The first ones pay for what is done only once.
    let (http, direct) = (spread(&http[20..]), spread(&direct[20..]));
    println!("decode + inference   p50 {:.3} ms  p99 {:.3} ms", direct.0, direct.1);
    println!("one image over HTTP  p50 {:.3} ms  p99 {:.3} ms", http.0, http.1);
    println!("added by the service p50 {:.3} ms (at most 2 ms)", http.0 - direct.0);
    if http.0 - direct.0 > 2.0 { bail!("the service adds more than 2 ms") } else { Ok(()) }
}

fn spread(times: &[Duration]) -> (f64, f64) {
    let mut ms: Vec<f64> = times.iter().map(|t| t.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    (ms[ms.len() / 2], ms[ms.len() * 99 / 100])
}

/// Sends `times` the load that the service can bear for `time` and checks what must hold.
pub fn overload(address: SocketAddr, folder: &Path, time: Duration, times: f64) -> anyhow::Result<()> {
    let bodies = groups(folder, 32)?;
    let single = post("/v1/assign", "image/png", &files(folder)?[0]);
    let bearable = throughput(address, &bodies, 4, Duration::from_secs(5))?;
    let before = single_ms(address, &single)?;
    let memory_before = metric(address, "process_resident_memory_bytes")?;
    println!("sustainable: {bearable:.0} images/s; one image takes {before:.2} ms");

    // Open loop: requests leave on a schedule, whatever the answers say. Each client may fall behind by the time
    // of one answer, so there are enough of them to keep the schedule.
    let wanted = bearable * times / 32.0;
    let clients = ((wanted * 0.25).ceil() as usize).clamp(64, 400);
    let pause = Duration::from_secs_f64(clients as f64 / wanted);
    println!(
        "overload: {:.0} requests/s of 32 images over {clients} connections for {:.0} s",
        wanted,
        time.as_secs_f64()
    );
    let statuses: Mutex<BTreeMap<String, usize>> = Mutex::new(BTreeMap::new());
    let mut highest = memory_before;
    let started = Instant::now();
    std::thread::scope(|scope| -> anyhow::Result<()> {
        for number in 0..clients {
            let (bodies, statuses) = (&bodies, &statuses);
            scope.spawn(move || {
                let mut client = Client::new(address);
                let mut seen: BTreeMap<String, usize> = BTreeMap::new();
                let mut due = started + pause.mul_f64(number as f64 / clients as f64);
                for n in number.. {
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    if started.elapsed() >= time {
                        break;
                    }
                    let answer = client.send(&bodies[n % bodies.len()].1);
                    let what = answer.map_or_else(
                        |e| e.kind().to_string(),
                        |a| {
                            if a.status == 429 && a.retry_after.is_none() {
                                "429 without Retry-After".into()
                            } else {
                                a.status.to_string()
                            }
                        },
                    );
                    *seen.entry(what).or_default() += 1;
                    due += pause;
                }
                if let Ok(mut all) = statuses.lock() {
                    seen.into_iter().for_each(|(what, count)| *all.entry(what).or_default() += count);
                }
            });
        }
        while started.elapsed() < time {
            std::thread::sleep(Duration::from_millis(500));
            highest = highest.max(metric(address, "process_resident_memory_bytes")?);
        }
        Ok(())
    })?;
    let took = started.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_secs(1));
    let after = single_ms(address, &single)?;
    let statuses = statuses.into_inner().map_err(|_| anyhow!("a client panicked"))?;
    let sent: usize = statuses.values().sum();
    let served = statuses.get("200").copied().unwrap_or(0);
    println!(
        "answers: {statuses:?}; sent {:.0} requests/s, {:.1} times what can be served",
        sent as f64 / took,
        sent as f64 / took * 32.0 / bearable
    );
    println!("served meanwhile: {:.0} images/s", served as f64 * 32.0 / took);
    println!(
        "memory: {:.0} MB before, {:.0} MB at most ({:+.0} MB; at most 100)",
        memory_before / 1e6,
        highest / 1e6,
        (highest - memory_before) / 1e6
    );
    println!("one image one second after: {after:.2} ms ({before:.2} ms before)");
    let allowed = |status: &String| ["200", "429", "503"].contains(&status.as_str());
    if !statuses.keys().all(allowed) {
        bail!("answers other than 200, 429 and 503");
    }
    if highest - memory_before > 100e6 {
        bail!("memory grew by more than 100 MB");
    }
    // Half as slow again, or half a millisecond, is the noise of a busy machine.
    if after > before * 1.5 + 0.5 {
        bail!("one second after the load single requests are slower than before");
    }
    Ok(())
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

fn metric(address: SocketAddr, name: &str) -> anyhow::Result<f64> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: load\r\nconnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.ok_or_else(|| anyhow!("/metrics has no {name}"))
}
