pub fn sum(data: &[u8]) -> u64 { data.iter().map(|&b| b as u64).sum() }
pub fn hash(data: &[u8]) -> u64 { data.iter().fold(1469598103934665603, |h, &b| (h ^ b as u64).wrapping_mul(1099511628211)) }
pub fn sorted(n: u64) -> u64 { let mut v: Vec<u64> = (0..n).map(|i| i.wrapping_mul(2654435761) % 1009).collect(); v.sort(); v[v.len() / 2] }
