"""Tables of counts and distributions that have them; shared by the generators that measure margins."""
