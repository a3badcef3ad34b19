#[test]
fn mixes() {
    assert_ne!(hot_loop::mix(3), 0);
}
