#!/usr/bin/perl
# carry_names: replaces the values that packaging/names has in HEAD by those that it has now, in all
# files of the repository. `make names` runs it.
#
# A page has some values in part: the maintainer's name and mail address, and of the address of the
# sources the words OWNER/NAME.
use strict;
use warnings;

my $file = 'packaging/names';

# values TEXT: returns the values in the text of packaging/names, and their parts.
sub values_of {
    my %value = $_[0] =~ /^([A-Z]+) *= *(.*?) *$/mg;
    @value{'NAME', 'MAIL'} = ($value{MAINTAINER} // '') =~ /^(.+) <(.+)>$/
        or die "$file: MAINTAINER: not of the form NAME <MAIL>\n";
    ($value{REPOSITORY}) = ($value{SOURCE} // '') =~ m{^https://[^/]+/([^/]+/[^/]+)$}
        or die "$file: SOURCE: not of the form https://HOST/OWNER/NAME\n";
    return %value;
}

# contents NAME: returns the contents of a file.
sub contents {
    local $/;
    open my $in, '<', $_[0] or die "$_[0]: $!\n";
    return <$in>;
}

my %before = values_of(scalar `git show HEAD:$file`);
my %now = values_of(contents($file));
my %new;
$new{$before{$_}} = $now{$_} // die "$file: $_ is missing\n" for keys %before;
# At each place the longest value counts: BUGS begins with SOURCE.
my $any = join '|', map { quotemeta } sort { length $b <=> length $a } keys %new;
for my $name (grep { $_ ne $file } split /\0/, `git ls-files -z`) {
    next unless -f $name && -T $name;
    my $text = contents($name);
    my $changed = $text =~ s/($any)/$new{$1}/gr;
    next if $changed eq $text;
    open my $out, '>', $name or die "$name: $!\n";
    print $out $changed;
    close $out or die "$name: $!\n";
    print "$name\n";
}
