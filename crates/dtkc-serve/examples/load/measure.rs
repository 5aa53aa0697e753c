//! The measurements.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use dtkc_infer::{ModelFile, Runtime, Session, SessionOptions};
use dtkc_testing::{Noise, files};

use crate::client::{Client, post, post_files};

/// Strokes on black, as in handwriting, of the model's size: compressible like the real thing.
pub fn write_images(model: &Path, folder: &Path, count: usize) -> anyhow::Result<()> {
    let shape = ModelFile::open(model)?.image().context("the model takes no images")?.shape();
    fs_err::create_dir_all(folder)?;
    let mut noise = Noise(1);
    let mut random = || noise.bits() as f32 / (1u64 << 31) as f32;
    let (width, height) = (shape.width as f32, shape.height as f32);
    for n in 0..count {
        let mut pixels = vec![0; shape.height * shape.width];
        let (mut x, mut y, mut angle) = (random() * width, random() * height, random() * 6.3);
        for _ in 0..2 * shape.width {
            angle += random() - 0.5;
            (x, y) = ((x + angle.cos()).clamp(2.0, width - 3.0), (y + angle.sin()).clamp(2.0, height - 3.0));
            for (dx, dy, value) in [(0, 0, 255), (1, 0, 180), (0, 1, 180), (1, 1, 90)] {
                pixels[(y as usize + dy) * shape.width + x as usize + dx] = value;
            }
        }
        let pixels: Vec<u8> = pixels.iter().flat_map(|&value| [value; 3].into_iter().take(shape.channels)).collect();
        let png = files::png(shape.height as u32, shape.width as u32, &pixels);
        fs_err::write(folder.join(format!("{n:05}.png")), png)?;
    }
    Ok(())
}

pub fn files(folder: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
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
    let image = model.image().context("the model takes no images")?;
    let mut preparer = dtkc_image::Preparer::new(image, dtkc_image::Limits::default());
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

pub fn spread(times: &[Duration]) -> (f64, f64) {
    let mut ms: Vec<f64> = times.iter().map(|t| t.as_secs_f64() * 1e3).collect();
    ms.sort_by(f64::total_cmp);
    (ms[ms.len() / 2], ms[ms.len() * 99 / 100])
}
