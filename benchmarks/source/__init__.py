"""Programs that measure what capture costs at the source."""
