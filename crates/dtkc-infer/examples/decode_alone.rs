//! Images per second of reading, decoding and resizing the files of a folder as a model wants them, without the model:
//! what decoding alone costs.
//!
//!     cargo run --release -p dtkc-infer --example decode_alone -- MODEL FOLDER [THREADS]

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use dtkc_image::{Limits, Preparer};
use dtkc_infer::{ModelFile, Prepare, RawItem};
use dtkc_item::ItemError;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, folder, rest @ ..] = arguments.as_slice() else {
        return Err("usage: decode_alone MODEL FOLDER [THREADS=1]".into());
    };
    let threads: usize = rest.first().map_or(Ok(1), |text| text.parse())?;
    let model = ModelFile::open(model)?;
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<_, std::io::Error>>()?;
    paths.sort();
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(|| decode(&model, &paths, &next))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker panicked".to_owned())?)
    })?;
    println!("{:.0} images/s ({threads} threads)", paths.len() as f64 / start.elapsed().as_secs_f64());
    Ok(())
}

fn decode(model: &ModelFile, paths: &[PathBuf], next: &AtomicUsize) -> Result<(), String> {
    let image = model.image().ok_or("the model takes no images")?;
    let mut preparer = Preparer::new(image, Limits::default());
    let mut out = vec![0; image.bytes()];
    while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
        let failed = |error: ItemError| format!("{}: {error}", path.display());
        RawItem::File(path.clone()).prepare(&mut preparer, &mut out).map_err(failed)?;
    }
    Ok(())
}
