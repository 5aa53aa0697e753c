//! How fast images are prepared on one core: `prepare HEIGHTxWIDTH gray|rgb REPEATS FILE...`.

use std::time::Instant;

use dtkc_image::{Limits, Preparer};
use dtkc_item::{Color, ImageSpec, Resize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [size, color, repeats, files @ ..] = arguments.as_slice() else {
        return Err("usage: prepare HEIGHTxWIDTH gray|rgb REPEATS FILE...".into());
    };
    let (height, width) = size.split_once('x').ok_or("the size is written HEIGHTxWIDTH")?;
    let (color, repeats): (Color, usize) = (color.parse()?, repeats.parse()?);
    let spec = ImageSpec { height: height.parse()?, width: width.parse()?, color, resize: Resize::Fit };
    let contents = files.iter().map(std::fs::read).collect::<Result<Vec<_>, _>>()?;
    let mut preparer = Preparer::new(spec, Limits::default());
    let mut out = vec![0; spec.bytes()];
    let start = Instant::now();
    for _ in 0..repeats {
        for bytes in &contents {
            preparer.prepare_into(bytes, &mut out)?;
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let count = repeats * contents.len();
    println!("{count} images in {seconds:.2} s, {:.0} images/s", count as f64 / seconds);
    Ok(())
}
