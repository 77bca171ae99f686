//! Graphs drawn on a surface: faces, Kasteleyn orientations, and their signs round a torus.
//!
//! Edge e is made of the darts 2e (from its first end) and 2e + 1. A rotation lists the darts at each vertex
//! counterclockwise. A face is walked with its inside on the left: after a dart comes the dart clockwise next to its reverse.
//! An orientation is Kasteleyn's if every face has an odd number of edges oriented against its walk. On a sphere one face of
//! each component may be left out; on a torus all can be satisfied if the number of vertices is even.
//!
//! Then, with a perfect matching M0 counted as +, all perfect matchings have the same sign on a sphere. On a torus the sign
//! of a matching depends on its homology class relative to M0, by a quadratic form q, and with the four orientations got by
//! reversing edges by the parity of their windings
//!
//!   number of perfect matchings = (1/2) sum over q of (-1)^{Arf q} Pf_q,
//!
//!   q(C) = (edges of C against the orientation) + (M0-edges leaving C on its left) + 1   (mod 2)   for a simple loop C.
//!
//! Sources: P. W. Kasteleyn (1961), The statistics of dimers on a lattice; D. Cimasoni, N. Reshetikhin (2007), Dimers on
//! surface graphs and spin structures I.

use crate::graphs::Graph;

/// A graph with a rotation.
#[derive(Clone, Debug)]
pub struct Embedding {
    /// The vertex a dart leaves.
    tail: Vec<u32>,
    /// The dart counterclockwise next at the same vertex.
    next: Vec<u32>,
    /// The dart clockwise next at the same vertex.
    before: Vec<u32>,
    /// The face on the left of each dart.
    face: Vec<u32>,
    faces: usize,
    vertices: usize,
    component: Vec<u32>,
    components: usize,
}

fn reverse(dart: u32) -> u32 {
    dart ^ 1
}

impl Embedding {
    /// A rotation from the directions of the darts at each vertex, given by the vector along each edge.
    ///
    /// `None` if two darts at a vertex have the same direction, or an edge has no length.
    pub fn from_displacements(graph: &Graph, displacements: &[[f64; 2]]) -> Option<Self> {
        let mut darts = vec![Vec::new(); graph.vertices()];
        for (e, (&(u, v), &[x, y])) in graph.edges().iter().zip(displacements).enumerate() {
            if !(x.hypot(y) > 0.0) {
                return None;
            }
            darts[u as usize].push((y.atan2(x), 2 * e as u32));
            darts[v as usize].push(((-y).atan2(-x), 2 * e as u32 + 1));
        }
        for list in &mut darts {
            list.sort_by(|a, b| a.0.total_cmp(&b.0));
            let turn = |a: f64, b: f64| (b - a).rem_euclid(std::f64::consts::TAU);
            let close = (1..list.len()).any(|i| turn(list[i - 1].0, list[i].0) < 1e-9);
            if close || (list.len() > 1 && turn(list[list.len() - 1].0, list[0].0) < 1e-9) {
                return None;
            }
        }
        let rotation = darts.into_iter().map(|list| list.into_iter().map(|(_, dart)| dart).collect()).collect();
        Some(Self::new(graph, rotation))
    }

    /// A rotation given as the darts at each vertex, counterclockwise; each dart once.
    pub fn new(graph: &Graph, rotation: Vec<Vec<u32>>) -> Self {
        let darts = 2 * graph.edges().len();
        let (mut next, mut before) = (vec![0; darts], vec![0; darts]);
        for list in &rotation {
            for (i, &dart) in list.iter().enumerate() {
                let after = list[(i + 1) % list.len()];
                next[dart as usize] = after;
                before[after as usize] = dart;
            }
        }
        let tail = graph.edges().iter().flat_map(|&(u, v)| [u, v]).collect();
        let (component, components) = graph.components();
        let mut embedding = Self {
            tail,
            next,
            before,
            face: vec![u32::MAX; darts],
            faces: 0,
            vertices: graph.vertices(),
            component,
            components,
        };
        for dart in 0..darts as u32 {
            if embedding.face[dart as usize] == u32::MAX {
                let mut walk = dart;
                while embedding.face[walk as usize] == u32::MAX {
                    embedding.face[walk as usize] = embedding.faces as u32;
                    walk = embedding.before[reverse(walk) as usize];
                }
                embedding.faces += 1;
            }
        }
        embedding
    }

    /// The walks round the faces of what is left when only some edges are kept: lists of darts, the inside on the left.
    pub fn faces_without(&self, kept: &[bool]) -> Vec<Vec<u32>> {
        let stays = |dart: u32| kept[dart as usize / 2];
        let mut seen = vec![false; self.tail.len()];
        let mut walks = Vec::new();
        for start in (0..self.tail.len() as u32).filter(|&dart| stays(dart)) {
            let (mut walk, mut dart) = (Vec::new(), start);
            while !seen[dart as usize] {
                seen[dart as usize] = true;
                walk.push(dart);
                dart = self.before[reverse(dart) as usize];
                while !stays(dart) {
                    dart = self.before[dart as usize];
                }
            }
            if !walk.is_empty() {
                walks.push(walk);
            }
        }
        walks
    }

    fn edges(&self) -> usize {
        self.tail.len() / 2
    }

    /// The sum of the genera of the components: 0 on spheres.
    pub fn genus(&self) -> usize {
        let mut alone = vec![true; self.vertices];
        self.tail.iter().for_each(|&v| alone[v as usize] = false);
        let isolated = alone.iter().filter(|&&is| is).count();
        // Each isolated vertex is a component with one face that no dart walks.
        let twice = 2 * self.components + self.edges() - self.vertices - (self.faces + isolated);
        twice / 2
    }

    /// Whether every face goes round no axis.
    fn faces_are_disks(&self, windings: &[[i32; 2]]) -> bool {
        let mut total = vec![[0i64; 2]; self.faces];
        for dart in 0..self.tail.len() {
            let sign = if dart % 2 == 0 { 1 } else { -1 };
            for axis in 0..2 {
                total[self.face[dart] as usize][axis] += sign * i64::from(windings[dart / 2][axis]);
            }
        }
        total.iter().all(|&sum| sum == [0, 0])
    }

    /// A spanning forest: the dart into each vertex from its parent, and whether an edge is in it.
    fn forest(&self) -> (Vec<Option<u32>>, Vec<bool>) {
        let mut first = vec![u32::MAX; self.vertices];
        (0..self.tail.len() as u32).for_each(|dart| first[self.tail[dart as usize] as usize] = dart);
        let mut into = vec![None; self.vertices];
        let mut seen = vec![false; self.vertices];
        let mut chosen = vec![false; self.edges()];
        let mut queue = std::collections::VecDeque::new();
        for root in 0..self.vertices {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            queue.push_back(root as u32);
            while let Some(v) = queue.pop_front() {
                if first[v as usize] == u32::MAX {
                    continue;
                }
                let mut dart = first[v as usize];
                loop {
                    let u = self.tail[reverse(dart) as usize];
                    if !seen[u as usize] {
                        seen[u as usize] = true;
                        into[u as usize] = Some(dart);
                        chosen[dart as usize / 2] = true;
                        queue.push_back(u);
                    }
                    dart = self.next[dart as usize];
                    if dart == first[v as usize] {
                        break;
                    }
                }
            }
        }
        (into, chosen)
    }

    /// A Kasteleyn orientation: whether each edge points from its second end to its first.
    ///
    /// `None` if there is none that satisfies every face of a component of genus above 0.
    pub fn orientation(&self) -> Option<Vec<bool>> {
        let (_, chosen) = self.forest();
        // Edges outside the forest join the faces of a component; a forest of them is oriented from its leaves on.
        let mut around: Vec<Vec<u32>> = vec![Vec::new(); self.faces];
        for dart in 0..self.tail.len() as u32 {
            if !chosen[dart as usize / 2] {
                around[self.face[dart as usize] as usize].push(dart);
            }
        }
        let mut against = vec![0u32; self.faces];
        // All edges point along their first dart: against the walk of the face on the left of the second.
        (0..self.edges()).for_each(|e| against[self.face[2 * e + 1] as usize] += 1);
        let mut flipped = vec![false; self.edges()];
        let mut seen = vec![false; self.faces];
        for root in 0..self.faces {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut order = vec![(root as u32, None)];
            let mut i = 0;
            while i < order.len() {
                let (face, _) = order[i];
                for &dart in &around[face as usize] {
                    let other = self.face[reverse(dart) as usize];
                    if !seen[other as usize] {
                        seen[other as usize] = true;
                        order.push((other, Some((dart / 2, face))));
                    }
                }
                i += 1;
            }
            for &(face, above) in order.iter().rev() {
                if against[face as usize].is_multiple_of(2)
                    && let Some((edge, parent)) = above
                {
                    flipped[edge as usize] = !flipped[edge as usize];
                    against[face as usize] += 1;
                    against[parent as usize] += 1;
                }
            }
            if against[root].is_multiple_of(2) && self.genus() > 0 {
                return None;
            }
        }
        Some(flipped)
    }

    /// Two simple loops whose windings differ modulo 2 and are both odd in some axis, as lists of darts, of a rotation of
    /// genus 1.
    ///
    /// `None` unless the torus of the windings is the surface of the rotation: unless each face goes round no axis, and two
    /// such loops do. A drawing on a plane whose edges cross may have genus 1, too.
    pub fn loops(&self, windings: &[[i32; 2]]) -> Option<[Vec<u32>; 2]> {
        if !self.faces_are_disks(windings) {
            return None;
        }
        let (into, chosen) = self.forest();
        let mut found: Vec<([i32; 2], Vec<u32>)> = Vec::new();
        for edge in 0..self.edges() {
            if chosen[edge] {
                continue;
            }
            let path = self.fundamental_loop(&into, 2 * edge as u32);
            let class = [0, 1].map(|axis| path.iter().map(|&dart| windings[dart as usize / 2][axis]).sum::<i32>() & 1);
            if class != [0, 0] && found.iter().all(|&(other, _)| other != class) {
                found.push((class, path));
                if found.len() == 2 {
                    let second = found.pop()?.1;
                    return Some([found.pop()?.1, second]);
                }
            }
        }
        None
    }

    /// The loop a dart closes with the forest.
    fn fundamental_loop(&self, into: &[Option<u32>], dart: u32) -> Vec<u32> {
        let up = |mut v: u32| {
            let mut path = Vec::new();
            while let Some(dart) = into[v as usize] {
                path.push(dart);
                v = self.tail[dart as usize];
            }
            path
        };
        // Downwards from the root to the tail of the dart, then the dart, then upwards from its head.
        let (mut down, mut back) = (up(self.tail[dart as usize]), up(self.tail[reverse(dart) as usize]));
        while down.last().is_some() && down.last() == back.last() {
            down.pop();
            back.pop();
        }
        let mut path: Vec<u32> = down.into_iter().rev().collect();
        path.push(dart);
        path.extend(back.into_iter().map(reverse));
        path
    }

    /// The quadratic form of an orientation and a reference matching (the edge at each vertex) on a simple loop.
    pub fn form(&self, path: &[u32], flipped: impl Fn(usize) -> bool, matched: &[u32]) -> bool {
        let mut parity = 1;
        for (i, &dart) in path.iter().enumerate() {
            let edge = dart as usize / 2;
            parity += usize::from((dart % 2 == 1) != flipped(edge));
            // At the head: what lies between the dart that goes on and the reverse of this one, counterclockwise, is left.
            let (on, back) = (path[(i + 1) % path.len()], reverse(dart));
            let mut left = self.next[on as usize];
            while left != back && left != on {
                parity += usize::from(matched[self.tail[left as usize] as usize] == left / 2);
                left = self.next[left as usize];
            }
        }
        parity % 2 == 1
    }

    /// The component of each vertex.
    pub fn component(&self) -> &[u32] {
        &self.component
    }
}
