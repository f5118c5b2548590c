"""What the tracker keeps beside pages: hosts, robots.txt, cookies, results."""
