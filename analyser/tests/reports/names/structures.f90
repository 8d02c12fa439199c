! Allocations in the ways of Fortran; "names X" says which name the analysis has to find.
module work
  implicit none
  integer, parameter :: many = 100000
  real(8), allocatable :: rate(:, :), increment(:)
  real(8) :: table(many)
  type field
    real(8), allocatable :: values(:)
  end type field
end module work

program structures
  use work
  implicit none
  type(field) :: pressure
  real(8), pointer :: view(:)
  real(8), allocatable :: copy(:), grown(:)

  allocate (rate(many, 2), increment(many))  ! names rate increment
  allocate (pressure%values(many))  ! names pressure%values
  allocate (view(many))  ! names view
  allocate (copy, source=increment)  ! names copy
  grown = [increment, increment]  ! names grown
  rate = 1; increment = 2; view = 3; pressure%values = 4; table = 5
  print *, rate(1, 1) + view(2) + pressure%values(3) + copy(4) + grown(5) + table(6)
end program structures
