//! Numbers and images that are the same in every run, on every machine.

/// A plain generator: good enough for weights and pixels of a test.
#[derive(Debug, Clone)]
pub struct Noise(pub u64);

impl Noise {
    /// 31 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    /// Numbers from -`scale` to `scale`.
    pub fn values(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| (self.bits() as f32 / (1u64 << 30) as f32 - 1.0) * scale).collect()
    }

    /// Bytes from 0 to 255.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.bits() as u8).collect()
    }
}

/// A gray image of `side` x `side` pixels that differs from the others: one of six patterns, shifted, with some noise.
pub fn drawing(side: usize, number: usize) -> Vec<u8> {
    let mut noise = Noise(number as u64 * 7919 + 1);
    let (shift, step, cross) = (noise.bits() as usize % 5, 2 + noise.bits() as usize % 4, noise.bits() as usize % side);
    let pixel = |i: usize, noise: &mut Noise| {
        let (y, x) = (i / side, i % side);
        let light = match number % 6 {
            0 => (y + shift) / step % 2 == 0,
            1 => (x + shift) / step % 2 == 0,
            2 => (x + y + shift) / step % 2 == 0,
            3 => y.abs_diff(cross) < step && x.abs_diff(side / 2) < step,
            4 => x < cross,
            _ => y > cross,
        };
        (if light { 180 } else { 20 }) + (noise.bits() % 60) as u8
    };
    (0..side * side).map(|i| pixel(i, &mut noise)).collect()
}
