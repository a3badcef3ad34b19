//! What a request carries.

use rust_hotpath::context::Context;

#[test]
fn baggage_travels_to_the_parts_of_a_request() {
    let request = Context::new("r-1", 10).with("tenant", "north").with("user", "ü");
    let part = request.child("db", 20);
    assert_eq!((part.id(), part.deadline()), ("r-1/db", 10));
    assert_eq!(
        (part.baggage("tenant"), part.baggage("user")),
        (Some("north"), Some("ü"))
    );
    assert_eq!(part.baggage("trace"), None);
    assert_eq!(request.child("db", 3).deadline(), 3);
}

#[test]
fn a_header_is_taken_apart() {
    let request = Context::new("r", 1).with_header(" tenant = north ,user=u=1;hidden;ttl=3,,=x,flag,trace=");
    let same = Context::new("r", 1)
        .with("tenant", "north")
        .with("user", "u=1")
        .with("trace", "");
    assert_eq!(request, same);
    assert_eq!(Context::new("r", 1).with_header(""), Context::new("r", 1));
}

#[test]
fn a_later_value_replaces_an_earlier_one() {
    let request = Context::new("r", 1).with("user", "a").with("user", "b");
    assert_eq!(request.baggage("user"), Some("b"));
}
