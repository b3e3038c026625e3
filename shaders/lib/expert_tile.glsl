// Which routes a workgroup of a product of experts works on, and with which matrix. Needs the buffers Routes and Slots.

uint beginOf(uint expert) { return routes[kRouteParts * push.routes + expert]; }
uint routeAt(uint place) { return routes[3u * push.routes + place]; }

// The input of a place.
uint inputOf(uint place) { return push.of_tokens != 0u ? routeAt(place) / push.n_used : place; }

// Places first .. end - 1 of the expert; none where its matrix is not in this slice.
Tile tileOfExpert(uint expert, uint first, uint end) {
  // Wraps for those before the slice, and for none.
  const uint slot = (push.has_slots != 0u ? slots[expert] : expert) - push.first;
  const uint groups = (push.rows + kGroupRows - 1u) / kGroupRows;
  return Tile(first, slot < push.count ? end : first, slot * groups * kGroupRows);
}

// Places are cut where an expert of the slice begins and at every kTokens-th, counted from the first of them: tile
// `index` goes from cut number `index` to the next and may be empty. An expert's cut comes before another at the same
// place, so that of expert e has number e + (its places before it - 1) / kTokens, rounded down.
Tile tileOf(uint index) {
  const uint n_routes = beginOf(push.n_experts);
  if (kTokens == 1u) {  // far fewer routes than experts: a tile for each
    return index < n_routes ? tileOfExpert(routes[routeAt(index)], index, index + 1u)
                            : Tile(0u, 0u, 0u);
  }
  const uint first_expert = push.has_slots != 0u ? 0u : push.first;
  const uint base = beginOf(first_expert);
  uint low = 0u;
  uint high = push.has_slots != 0u ? push.n_experts : push.count;
  while (high - low > 1u) {
    const uint middle = (low + high) / 2u;
    const uint before = beginOf(first_expert + middle) - base;
    if (middle + (max(before, 1u) - 1u) / kTokens <= index) {
      low = middle;
    } else {
      high = middle;
    }
  }
  const uint block = base + (index - low) * kTokens;
  const uint expert = first_expert + low;
  const uint begin = max(beginOf(expert), block);
  return tileOfExpert(expert, begin, max(begin, min(beginOf(expert + 1u), block + kTokens)));
}
