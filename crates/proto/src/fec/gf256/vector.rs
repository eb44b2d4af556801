//! The bulk operations in terms of six vector primitives, for every vector form alike.
//!
//! [`vector_kernel`] expands in a module that defines `WIDTH` and the functions
//! `load`, `store`, `zero`, `xor`, `prepare` and `multiply` under the same processor features.
//! A macro rather than a trait, because trait methods cannot carry a processor feature.
//!
//! Octets at the end that do not fill a vector are covered by one vector that overlaps octets
//! already done.

/// The `N` octets of `source` from `offset` on, zeros past its end.
#[cold]
pub(super) fn padded<const N: usize>(source: &[u8], offset: usize) -> [u8; N] {
    let mut octets = [0; N];
    if let Some(rest) = source.get(offset..) {
        for (octet, &value) in octets.iter_mut().zip(rest) {
            *octet = value;
        }
    }
    octets
}

macro_rules! vector_kernel {
    ($features:literal) => {
        /// Computes `destination` += `factor` · `source`, over the length of the shorter.
        #[target_feature(enable = $features)]
        pub(super) fn mul_add(destination: &mut [u8], source: &[u8], factor: u8) {
            let len = destination.len().min(source.len());
            let (destination, source) = (&mut destination[..len], &source[..len]);
            let (Some(before), Some(added)) = (destination.last_chunk(), source.last_chunk())
            else {
                scalar::mul_add(destination, source, factor);
                return;
            };
            let by = prepare(factor);
            // Computed before the loop changes the octets that it shares with the last whole
            // vector.
            let last = xor(load(before), multiply(by, load(added)));
            let sums = destination.as_chunks_mut().0;
            for (sum, octets) in sums.iter_mut().zip(source.as_chunks().0) {
                let total = xor(load(sum), multiply(by, load(octets)));
                store(sum, total);
            }
            if let Some(end) = destination.last_chunk_mut() {
                store(end, last);
            }
        }

        /// Computes `destination` = Σ `coefficients[j]` · `sources[j]`.
        #[target_feature(enable = $features)]
        pub(super) fn dot(destination: &mut [u8], sources: &[&[u8]], coefficients: &[u8]) {
            let len = destination.len();
            let mut offset = 0;
            while let Some(sums) = chunk_mut(destination, offset) {
                dot_lanes::<4, { 4 * WIDTH }>(sums, offset, sources, coefficients);
                offset += 4 * WIDTH;
            }
            while let Some(sums) = chunk_mut(destination, offset) {
                dot_lanes::<1, WIDTH>(sums, offset, sources, coefficients);
                offset += WIDTH;
            }
            if offset == len {
                return;
            }
            if let Some(sums) = destination.last_chunk_mut() {
                dot_lanes::<1, WIDTH>(sums, len - WIDTH, sources, coefficients);
            } else {
                let mut sums = [0; WIDTH];
                dot_lanes::<1, WIDTH>(&mut sums, 0, sources, coefficients);
                destination.copy_from_slice(&sums[..len]);
            }
        }

        /// Computes `OCTETS` = `LANES` · `WIDTH` octets of the sum, kept in registers while the
        /// sources pass.
        #[inline]
        #[target_feature(enable = $features)]
        fn dot_lanes<const LANES: usize, const OCTETS: usize>(
            sums: &mut [u8; OCTETS],
            offset: usize,
            sources: &[&[u8]],
            coefficients: &[u8],
        ) {
            let mut lanes = [zero(); LANES];
            for (source, &coefficient) in sources.iter().zip(coefficients) {
                if source.len() <= offset {
                    continue;
                }
                let by = prepare(coefficient);
                let staged;
                let octets: &[u8; OCTETS] = if let Some(octets) = source[offset..].first_chunk() {
                    octets
                } else {
                    staged = padded(source, offset);
                    &staged
                };
                for (lane, octets) in lanes.iter_mut().zip(octets.as_chunks().0) {
                    *lane = xor(*lane, multiply(by, load(octets)));
                }
            }
            for (sum, lane) in sums.as_chunks_mut().0.iter_mut().zip(lanes) {
                store(sum, lane);
            }
        }

        fn chunk_mut<const N: usize>(octets: &mut [u8], offset: usize) -> Option<&mut [u8; N]> {
            octets.get_mut(offset..)?.first_chunk_mut()
        }
    };
}

pub(super) use vector_kernel;
