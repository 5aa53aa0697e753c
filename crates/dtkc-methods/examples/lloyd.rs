//! Times Lloyd's iterations on points of a file, for `scripts/bench-kmeans.sh`.
//!
//! `lloyd POINTS CENTRES WIDTH ITERATIONS THREADS`: two files of little-endian f32; prints inertia and seconds as JSON.

use std::time::Instant;

use dtkc_methods::kmeans::{Points, lloyd_from};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [points, centres, width, iterations, threads] = arguments.as_slice() else {
        return Err("give POINTS CENTRES WIDTH ITERATIONS THREADS".into());
    };
    let (width, iterations) = (width.parse()?, iterations.parse()?);
    dtkc_ops::set_threads(threads.parse()?);
    let (values, centres) = (read(points)?, read(centres)?);
    let begin = Instant::now();
    let found = lloyd_from(Points { values: &values, width }, centres, iterations, 0.0, &|| false)?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{{\"seconds\": {seconds}, \"iterations\": {}, \"inertia\": {}}}", found.iterations, found.inertia);
    Ok(())
}

fn read(path: &str) -> Result<Vec<f32>, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect())
}
