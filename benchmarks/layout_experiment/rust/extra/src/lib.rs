//! Code that no benchmark calls while it works: each says once at its start what it is made of.

#[inline(never)]
pub fn describe(name: &str) -> u64 {
    let total = name.len() as u64;
    // added
    total
}
