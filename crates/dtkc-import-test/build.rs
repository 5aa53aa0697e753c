//! Writes a model file and lets burn-onnx turn it into burn code.

use std::path::Path;

use dtkc_onnx::testing::Sample;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = std::env::var("OUT_DIR")?;
    let sample = Sample::small();
    let file = Path::new(&folder).join("sample.onnx");
    std::fs::write(&file, dtkc_onnx::write(&sample.network(), &sample.metadata())?)?;
    let file = file.to_str().ok_or("the build folder's name is not text")?;
    let strategy = burn_onnx::LoadStrategy::Embedded;
    burn_onnx::ModelGen::new().input(file).out_dir("imported/").load_strategy(strategy).run_from_script();
    Ok(())
}
