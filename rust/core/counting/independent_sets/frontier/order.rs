//! Orders of vertices with small frontiers.

/// An order that takes, again and again, the vertex after which the frontier is smallest.
pub fn greedy(adjacency: &[Vec<u32>]) -> Vec<u32> {
    let vertices = adjacency.len();
    let mut done = vec![false; vertices];
    let mut open: Vec<usize> = adjacency.iter().map(Vec::len).collect();
    let mut order = Vec::with_capacity(vertices);
    while order.len() < vertices {
        let growth = |v: usize| {
            let closed = adjacency[v].iter().filter(|&&u| done[u as usize] && open[u as usize] == 1).count();
            (i64::from(open[v] > 0) - closed as i64, std::cmp::Reverse(adjacency[v].len() - open[v]), open[v])
        };
        let v = (0..vertices).filter(|&v| !done[v]).min_by_key(|&v| growth(v)).expect("a vertex is left");
        done[v] = true;
        adjacency[v].iter().for_each(|&u| open[u as usize] -= 1);
        order.push(v as u32);
    }
    order
}

/// The components one after another, the vertices of each by rank.
pub fn by_rank(adjacency: &[Vec<u32>], rank: impl Fn(u32) -> u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..adjacency.len() as u32).collect();
    order.sort_by_key(|&v| rank(v));
    let mut first = vec![u32::MAX; adjacency.len()];
    let mut stack = Vec::new();
    for (place, &v) in (0..).zip(&order) {
        stack.push(v);
        while let Some(u) = stack.pop() {
            if first[u as usize] == u32::MAX {
                first[u as usize] = place;
                stack.extend(&adjacency[u as usize]);
            }
        }
    }
    order.sort_by_key(|&v| first[v as usize]);
    order
}
