//! Real files, changed at random.

/// Values at which counts and sizes go wrong.
const EDGES: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0x1000_0000,
];
/// No input grows beyond this by repetition.
const LARGEST: usize = 1 << 20;

/// Random numbers (splitmix64): the same for the same start on every machine.
pub struct Random(pub u64);

impl Random {
    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `n`; 0 where that is 0.
    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.bits() % n as u64) as usize }
    }
}

/// What inputs are made of.
pub struct Seeds {
    /// Real files, which are changed.
    pub real: Vec<Vec<u8>>,
    /// What once ended badly, which stays as it is: changed, it would mostly do the same again.
    pub bad: Vec<Vec<u8>>,
}

/// Input number `n`: a real file, changed in one to eight places. The first inputs are the seeds themselves.
pub fn input(seeds: &Seeds, n: u64) -> Vec<u8> {
    if let Some(seed) = usize::try_from(n).ok().and_then(|n| seeds.real.iter().chain(&seeds.bad).nth(n)) {
        return seed.clone();
    }
    let seeds = &seeds.real;
    let mut random = Random(n);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(8) {
        change(&mut bytes, seeds, &mut random);
    }
    bytes
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    let at = random.below(bytes.len());
    match random.below(10) {
        0 | 1 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
        2 if !bytes.is_empty() => bytes[at] = random.bits() as u8,
        3 | 4 => put_edge(bytes, at, random),
        5 => bytes.truncate(at),
        6 => {
            let end = (at + 1 + random.below(64)).min(bytes.len());
            bytes.drain(at..end);
        }
        7 if bytes.len() < LARGEST => repeat(bytes, at, random),
        8 => {
            let other = &seeds[random.below(seeds.len())];
            let from = random.below(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        _ => {
            let text: &[u8] =
                [&b"\0\0\0\0"[..], b"../", b"\xff\xfe", b"%n%s", b"1e999", b"NaN", b"\"", b"[[[["][random.below(8)];
            bytes.splice(at..at, text.iter().copied());
        }
    }
}

/// Writes a number of 1, 2, 4 or 8 bytes over what is there, in either order.
fn put_edge(bytes: &mut [u8], at: usize, random: &mut Random) {
    let (value, size) = (EDGES[random.below(EDGES.len())], 1 << random.below(4));
    let mut number = value.to_le_bytes()[..size].to_vec();
    if random.below(2) == 0 {
        number.reverse();
    }
    bytes.iter_mut().skip(at).zip(number).for_each(|(place, byte)| *place = byte);
}

fn repeat(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let end = (at + 1 + random.below(128)).min(bytes.len());
    let part = bytes[at..end].to_vec();
    let most = if random.below(8) == 0 { 500 } else { 4 };
    let times = 1 + random.below(most);
    bytes.splice(at..at, part.repeat(times));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_is_told_by_its_number() {
        let real = vec![b"first seed".to_vec(), b"second seed".to_vec()];
        let seeds = Seeds { real: real.clone(), bad: vec![b"bad".to_vec()] };
        assert_eq!([0, 1, 2].map(|n| input(&seeds, n)), [real[0].clone(), real[1].clone(), b"bad".to_vec()]);
        assert_eq!(input(&seeds, 77), input(&seeds, 77));
        let different = (3..200).filter(|&n| !real.contains(&input(&seeds, n))).count();
        assert!(different > 150, "{different}");
    }

    #[test]
    fn nothing_is_too_short_to_be_changed() {
        let seeds = Seeds { real: vec![vec![], vec![1]], bad: vec![] };
        (0..5000).for_each(|n| drop(input(&seeds, n)));
    }
}
