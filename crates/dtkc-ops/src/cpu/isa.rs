//! Instruction sets: the loops are written once and compiled for each, the choice is made at run time.

/// An instruction set that this machine has. Only [`Isa::detect`] and [`Isa::available`] make one, which is what
/// makes calling the code compiled for it sound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Isa(Set);

/// The sets that the code is compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    /// 512-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What the compilation target guarantees (NEON on 64-bit ARM).
    Base,
}

impl Isa {
    /// The best set of this machine.
    pub(crate) fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512vl") {
                return Isa(Set::Avx512);
            }
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                return Isa(Set::Avx2);
            }
        }
        Isa(Set::Base)
    }

    /// Every set of this machine, so that tests cover all of them.
    #[cfg(test)]
    pub(crate) fn available() -> Vec<Isa> {
        let mut sets = vec![Isa(Set::Base)];
        #[cfg(target_arch = "x86_64")]
        {
            if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
                sets.push(Isa(Set::Avx2));
            }
            if Isa::detect() == Isa(Set::Avx512) {
                sets.push(Isa(Set::Avx512));
            }
        }
        sets
    }

    pub(crate) fn set(self) -> Set {
        self.0
    }

    /// Output channels that a register tile covers: the block length of packed weights.
    pub(crate) fn lanes(self) -> usize {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => 32,
            _ => 16,
        }
    }

    /// `channels` rounded up to whole blocks of [`Isa::lanes`].
    pub(crate) fn padded(self, channels: usize) -> usize {
        channels.next_multiple_of(self.lanes())
    }
}

/// `a * b + c`, fused where the instruction set has it (elsewhere `mul_add` would be a slow library call).
#[inline(always)]
pub(crate) fn fma<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

/// Declares a function that runs `body` compiled for the instruction set of its first argument.
///
/// `body` is generic over `<const FMA: bool, const P: usize, const L: usize, const W: usize>`: fused multiply-add,
/// rows and lanes of a register tile (P x L accumulators fill the register file), lanes of one vector.
macro_rules! per_isa {
    ($(#[$doc:meta])* $vis:vis fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => $body:ident;) => {
        $(#[$doc])*
        // `unsafe`: a function compiled for an instruction set may only run where it exists, and an `Isa` is only
        // made after checking that.
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $vis fn $name(isa: $crate::cpu::isa::Isa, $($arg: $ty),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx512($($arg: $ty),*) {
                $body::<true, 8, 32, 16>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            #[allow(clippy::too_many_arguments)]
            fn avx2($($arg: $ty),*) {
                $body::<true, 6, 16, 8>($($arg),*)
            }
            match isa.set() {
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::isa::Set::Avx512 => unsafe { avx512($($arg),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::isa::Set::Avx2 => unsafe { avx2($($arg),*) },
                #[cfg(target_arch = "aarch64")]
                $crate::cpu::isa::Set::Base => $body::<true, 6, 16, 8>($($arg),*),
                #[cfg(not(target_arch = "aarch64"))]
                $crate::cpu::isa::Set::Base => $body::<false, 2, 16, 8>($($arg),*),
            }
        }
    };
}
pub(crate) use per_isa;

/// A loop of at most 8 steps, written out. As a loop, the compiler for 512-bit vectors takes the steps for the lanes of
/// a vector and scatters what lies side by side: the backward convolution was seven times slower.
macro_rules! unrolled {
    ($i:ident in 0..3 $body:block) => {
        $crate::cpu::isa::unrolled!(@ $i 3 $body 0 1 2)
    };
    ($i:ident in 0..$n:ident $body:block) => {
        const { assert!($n <= 8, "a loop of more than 8 steps would lose its end") };
        $crate::cpu::isa::unrolled!(@ $i $n $body 0 1 2 3 4 5 6 7)
    };
    (@ $i:ident $n:tt $body:block $($step:literal)*) => {
        $({
            const $i: usize = $step;
            if $i < $n $body
        })*
    };
}
pub(crate) use unrolled;
